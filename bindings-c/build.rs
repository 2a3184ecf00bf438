//! How the shared library is linked.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // The number is that of `stanchion_abi_version`.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libstanchion.so.0");
        // Its threads and fork handlers stay when a program closes it.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
