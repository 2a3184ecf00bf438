//! Tells the linker what an addon needs.

fn main() {
    napi_build::setup();
}
