//! Versions.

use std::ffi::c_char;

use crate::boundary;

/// The number in the name of the shared library. A program that was built for another number cannot use it.
pub const STANCHION_ABI_VERSION: i32 = 0;

const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");

/// The version of the library, such as "0.1.0". Never NULL, and never freed. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_version() -> *const c_char {
    boundary::value(VERSION.as_ptr().cast(), || VERSION.as_ptr().cast())
}

/// The STANCHION_ABI_VERSION of the library that is loaded, to be compared with that of the header. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_abi_version() -> i32 {
    boundary::value(STANCHION_ABI_VERSION, || STANCHION_ABI_VERSION)
}
