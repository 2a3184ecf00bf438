"""Where npm and Composer would take long, on an emulated processor: their packages, unpacked as they would have done it."""

import tarfile
import zipfile

import npm
from dist import bring, example, only, says, with_url

CPUS = {"x86_64": "x64", "aarch64": "arm64"}


def addon(root, url):
    place, inside = root.fresh("addon")
    native = f"linux-{CPUS[root.cpu]}-gnu"
    for name, pattern in (("stanchion", "stanchion-[0-9]*.tgz"), (f"@stanchion/{native}", f"stanchion-{native}-*.tgz")):
        with tarfile.open(only(pattern)) as packed:
            packed.extractall(place / "unpacked", filter="data")
        (place / "node_modules" / name).parent.mkdir(parents=True, exist_ok=True)
        (place / "unpacked" / "package").rename(place / "node_modules" / name)
    npm.write(place, url)
    return f"the example is over after {says(root, 'node example.mjs', inside):.1f} s"


def library(root, url):
    """The library for the processor is found among all that the PHP package has."""
    place, inside = root.fresh("library")
    bring(place, "stanchion-php-*.zip")
    with zipfile.ZipFile(only("stanchion-php-*.zip")) as packed:
        packed.extractall(place / "package")
    load = ("<?php spl_autoload_register(fn ($name) => require __DIR__ . '/package/src/' "
            ". str_replace('\\\\', '/', substr($name, 10)) . '.php');\n")
    (place / "example.php").write_text(load + with_url(example("bindings-c/php", "php"), url))
    return f"the example is over after {says(root, 'php example.php', inside):.1f} s"


CASES = {"addon": addon, "library": library}
ONCE = {}
