/*
 * Stanchion for C and C++: distributed locks, and a queue of tasks. Made from the sources of the library: `make headers`.
 *
 * Handles are numbers. 0 is none. One that was freed, is of another kind, or was never given out is noticed, and answered
 * with STANCHION_ERR_INVALID_HANDLE; also if another thread frees it in the middle of a call, which then goes on to its
 * end. Each kind has a function to free it.
 *
 * Statuses: a function that can fail returns STANCHION_OK, which is 0; another outcome that is no error, which is
 * positive; or an error, which is negative (see stanchion_status).
 *
 * Errors: the last argument of such a function is NULL, or the address of a pointer. If it fails, and only then, the
 * pointer gets an error with an explanation, which is yours to free.
 *
 * Out-parameters are written only if the function does not fail, and only if the outcome has a value for them.
 *
 * Texts are UTF-8 with a length; a NUL at the end is neither needed nor counted. NULL with the length 0 is an empty text, or
 * "not given" where a text may be missing. Payloads are any bytes. The library copies what it is passed. A text that it
 * gives is a view, which lives as long as the handle that it came from.
 *
 * Structs begin with their size, so that they can grow. For those that are passed, call their init function with sizeof,
 * and change what is to be changed; for those that are filled in, set struct_size to sizeof. NULL options are the default.
 *
 * Times are milliseconds: spans, or (named so) since 1970. -1 stands for "not given" where a number may be missing.
 *
 * Threads: any thread may call any function, at any time, on any handle. A call that waits holds nobody else up. No function
 * may be called in a signal handler. The library calls no function of the program; its own threads have all signals
 * blocked.
 *
 * Cancellation (Linux): pthread_cancel neither ends a thread in the middle of a call nor the call earlier. The thread ends at its
 * first cancellation point after the call: free in a cleanup handler what calls have given. To end a wait, set the number
 * that `cancel`, mostly in the options, points to. With PTHREAD_CANCEL_ASYNCHRONOUS no function may be called.
 *
 * Forks: a child may go on using a client. A lease, claim or worker stays the parent's: in the child calls on it answer
 * STANCHION_ERR_FORKED, and freeing it there does not end it.
 */
