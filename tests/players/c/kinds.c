/* Locks of all kinds: which one a request means, and the functions of that. */

#include "operations.h"

static void several(actor *self, const json_t *names, some_lock *lock) {
  if (!json_is_array(names)) refuse(self, "it is no array");
  for (; lock->count < json_array_size(names); lock->count++) {
    if (lock->count == MOST_SEVERAL) refuse(self, "the player knows no more locks at once");
    lock->several[lock->count] = text_of(self, json_array_get(names, lock->count));
  }
}

some_lock lock_of(actor *self, const json_t *request) {
  const json_t *told = json_object_get(request, "lock");
  some_lock lock = {.kind = EXCLUSIVE};
  if (json_object_get(told, "read") != NULL) {
    lock.kind = READ;
    lock.name = text(self, told, "read");
  } else if (json_object_get(told, "write") != NULL) {
    lock.kind = WRITE;
    lock.name = text(self, told, "write");
  } else if (json_object_get(told, "semaphore") != NULL) {
    lock.kind = SEMAPHORE;
    lock.name = text(self, told, "semaphore");
    lock.permits = whole(self, told, "permits", NOT_GIVEN);
  } else if (json_object_get(told, "several") != NULL) {
    lock.kind = SEVERAL;
    several(self, json_object_get(told, "several"), &lock);
  } else {
    lock.name = json_object_get(told, "exclusive") != NULL ? text(self, told, "exclusive") : text_of(self, told);
  }
  lock.owner = maybe_text(self, told, "owner");
  return lock;
}

int32_t acquire_some(actor *self, const some_lock *lock, const stanchion_lock_options *options, stanchion_lease *out,
                     stanchion_error **error) {
  switch (lock->kind) {
  case READ: return stanchion_read_lock_acquire(NAMED(lock->name), options, out, error);
  case WRITE: return stanchion_write_lock_acquire(NAMED(lock->name), options, out, error);
  case SEMAPHORE: return stanchion_semaphore_acquire(NAMED(lock->name), lock->permits, options, out, error);
  case SEVERAL: return stanchion_multi_lock_acquire(self->client, lock->several, lock->count, options, out, error);
  default: return stanchion_lock_acquire(NAMED(lock->name), options, out, error);
  }
}

int32_t holders_of_some(actor *self, const some_lock *lock, stanchion_holders *out, stanchion_error **error) {
  switch (lock->kind) {
  case READ:
  case WRITE: return stanchion_rw_lock_holders(NAMED(lock->name), out, error);
  case SEMAPHORE: return stanchion_semaphore_holders(NAMED(lock->name), out, error);
  case SEVERAL: refuse(self, "each of several locks is asked for itself"); return 0;
  default: return stanchion_lock_holders(NAMED(lock->name), out, error);
  }
}

int32_t waiters_of_some(actor *self, const some_lock *lock, stanchion_waiters *out, stanchion_error **error) {
  switch (lock->kind) {
  case READ:
  case WRITE: return stanchion_rw_lock_waiters(NAMED(lock->name), out, error);
  case SEMAPHORE: return stanchion_semaphore_waiters(NAMED(lock->name), out, error);
  case SEVERAL: refuse(self, "each of several locks is asked for itself"); return 0;
  default: return stanchion_lock_waiters(NAMED(lock->name), out, error);
  }
}

int32_t some_is_locked(actor *self, const some_lock *lock, stanchion_error **error) {
  switch (lock->kind) {
  case READ:
  case WRITE: return stanchion_rw_lock_is_locked(NAMED(lock->name), error);
  case SEMAPHORE: return stanchion_semaphore_is_locked(NAMED(lock->name), error);
  case SEVERAL: refuse(self, "each of several locks is asked for itself"); return 0;
  default: return stanchion_lock_is_locked(NAMED(lock->name), error);
  }
}

int32_t break_some(actor *self, const some_lock *lock, stanchion_error **error) {
  switch (lock->kind) {
  case READ:
  case WRITE: return stanchion_rw_lock_break_lease(NAMED(lock->name), error);
  case SEMAPHORE: return stanchion_semaphore_break_lease(NAMED(lock->name), error);
  case SEVERAL: refuse(self, "each of several locks is asked for itself"); return 0;
  default: return stanchion_lock_break_lease(NAMED(lock->name), error);
  }
}
