//! Collects the Rust of the project's README and of the guides, where it stands in tabs and so is indented, for `lib.rs` to
//! have as documentation: its examples are tests.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (readme, guides) = (root.join("README.md"), root.join("docs/guides"));
    println!("cargo::rerun-if-changed={}", readme.display());
    println!("cargo::rerun-if-changed={}", guides.display());
    let mut pages: Vec<PathBuf> =
        fs::read_dir(&guides)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    pages.sort();
    pages.insert(0, readme);
    let mut found = String::new();
    for page in pages.iter().filter(|page| page.extension().is_some_and(|end| end == "md")) {
        found.push_str(&format!("# {}\n\n", page.file_stem().unwrap_or_default().display()));
        collect(&fs::read_to_string(page)?, &mut found);
    }
    // A program has a file or a server, a test its memory.
    for url in ["sqlite:app.db", "redis://localhost"] {
        found = found.replace(url, "memory:");
    }
    fs::write(PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("guides.md"), found)
}

fn collect(text: &str, found: &mut String) {
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(indent) = line.find("```rust").filter(|indent| line[..*indent].trim().is_empty()) else {
            continue;
        };
        found.push_str(&format!("{}\n", &line[indent..]));
        for line in lines.by_ref() {
            found.push_str(&format!("{}\n", line.get(indent..).unwrap_or_default()));
            if line.trim() == "```" {
                break;
            }
        }
        found.push('\n');
    }
}
