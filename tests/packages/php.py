"""The package for Composer."""

import json

from dist import bring, example, installed, says, times, with_url

COMPOSER = "COMPOSER_ALLOW_SUPERUSER=1 composer --quiet require stanchion/stanchion"


def project(root, name, url):
    """A folder with the package, and README's first example: where it is outside, inside, and how long it took."""
    place, inside = root.fresh(name)
    (place / "packages").mkdir()
    bring(place / "packages", "stanchion-php-*.zip")
    (place / "example.php").write_text(
        "<?php require __DIR__ . '/vendor/autoload.php';\n" + with_url(example("bindings-c/php", "php"), url))
    # All that Composer installs is here: nothing is looked up.
    repositories = [{"type": "artifact", "url": "packages"}, {"packagist": False}]
    (place / "composer.json").write_text(json.dumps({"repositories": repositories}))
    return place, inside, installed(root, COMPOSER, inside)


def php(root, url):
    _, inside, took = project(root, "php", url)
    return times(took, says(root, "php example.php", inside))


CASES = {"php": php}
ONCE = {}
