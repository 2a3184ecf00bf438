"""The packages for npm."""

from dist import bring, example, installed, says, times, with_url


def npm(root, url):
    place, inside = root.fresh("npm")
    bring(place, "stanchion-[0-9]*.tgz", "stanchion-linux-x64-gnu-*.tgz")
    (place / "package.json").write_text('{ "private": true }\n')
    # Without its types it is JavaScript.
    code = with_url(example("bindings-node", "ts"), url).replace("<{ to: string }>", "") + "\nawait client.close()\n"
    (place / "example.mjs").write_text(code)
    took = installed(root, "npm install --offline --ignore-scripts --no-audit --no-fund ./*.tgz", inside)
    return times(took, says(root, "node example.mjs", inside))


CASES = {"npm": npm}
ONCE = {}
