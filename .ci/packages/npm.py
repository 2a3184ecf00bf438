"""The packages for npm: the main one, and that of a platform."""

import sys

from tools import DIST, LICENSES, ROOT

sys.path.insert(0, str(ROOT / "bindings-node"))
import build as packages  # noqa: E402


def build(platform, built):
    packages.facade(packages.tools())
    packages.packages(DIST, built / "libstanchion_node.so", platform.npm, LICENSES)
