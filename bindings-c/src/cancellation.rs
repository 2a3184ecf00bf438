//! `pthread_cancel`: it unwinds its thread in a way that Rust answers with an abort. So no call is cancelled in its middle:
//! the thread ends at its first cancellation point afterwards.

/// Keeps the calling thread from being cancelled while it lives. Costs a few nanoseconds, and no call of the system.
pub(crate) struct Uncancelled(#[cfg(target_os = "linux")] libc::c_int);

#[cfg(target_os = "linux")]
mod linux {
    use libc::c_int;

    pub(super) const DISABLE: c_int = 1;

    // Not in the crate libc.
    unsafe extern "C" {
        pub(super) fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
    }
}

#[cfg(target_os = "linux")]
impl Uncancelled {
    pub(crate) fn begin() -> Self {
        let mut before = linux::DISABLE;
        // SAFETY: it changes a flag of the calling thread, and writes what that was.
        unsafe { linux::pthread_setcancelstate(linux::DISABLE, &raw mut before) };
        Self(before)
    }
}

#[cfg(target_os = "linux")]
impl Drop for Uncancelled {
    fn drop(&mut self) {
        // SAFETY: as above. What another call further out has switched off stays off.
        unsafe { linux::pthread_setcancelstate(self.0, std::ptr::null_mut()) };
    }
}

#[cfg(not(target_os = "linux"))]
impl Uncancelled {
    pub(crate) fn begin() -> Self {
        Self()
    }
}
