"""What is linked into the packages: a bill of materials for each (CycloneDX), and the licences of all of it."""

from tools import DIST, PLACE, ROOT, THIRD_PARTY, VERSION, WORK, run

# Those that cargo compiles. The wheel has its bill inside, too.
PRODUCTS = {"c": "bindings-c", "node": "bindings-node", "python": "bindings-python", "cli": "cli"}
TOOLS = {"cargo-cyclonedx": "0.5.9", "cargo-about": "0.9.3"}


def tool(name):
    """A program from the Rust registry, of this version; compiled the first time."""
    place = WORK / "cargo-tools" / f"{name}-{TOOLS[name]}"
    if not (place / "bin" / name).exists():
        features = ["--features", "cli"] if name == "cargo-about" else []
        run("cargo", "install", "--quiet", "--locked", "--root", place, "--target-dir", WORK / "cargo-tools" / "target",
            f"{name}@{TOOLS[name]}", *features)
    return place / "bin" / name


def licences():
    """One page with the licences of everything that is linked, which goes into each package."""
    run(tool("cargo-about"), "generate", "--workspace", "--locked", "--fail", "--config", PLACE / "about.toml",
        "--output-file", THIRD_PARTY, PLACE / "about.hbs")


def bill(product, platform):
    return DIST / f"stanchion-{product}-{VERSION}-{platform.name}.cdx.json"


def bills(platform):
    """Into dist: for each product what it is made of."""
    run(tool("cargo-cyclonedx"), "cyclonedx", "--format", "json", "--spec-version", "1.5", "--target", platform.triple,
        "--override-filename", "bill", "--quiet", "--manifest-path", ROOT / "Cargo.toml")
    for product, folder in PRODUCTS.items():
        # Our own crates are named by their folders: the same ones wherever that was.
        text = (ROOT / folder / "bill.json").read_text().replace(f"file://{ROOT}/", "file:///stanchion/")
        bill(product, platform).write_text(text)
    for made in ROOT.glob("*/bill.json"):
        made.unlink()
