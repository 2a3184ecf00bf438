//! Tells the linker what an addon needs, and the macros where to put the types of its functions.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    napi_build::setup();
    // Always, so that no variable is needed that other builds do not have, for which cargo would build it once more.
    let made = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    // Of a path like debug/build/stanchion-node-0123/out.
    let types = made.ancestors().nth(3).unwrap_or(Path::new("")).join("node-types");
    fs::create_dir_all(&types)?;
    println!("cargo::rustc-env=NAPI_TYPE_DEF_TMP_FOLDER={}", types.display());
    Ok(())
}
