"""What the cases have in common: the packages in dist/, the first examples of the READMEs, and what these say."""

import re
import time

from roots import ROOT

DIST = ROOT / "dist"
SAID = "nobody else is here; my fence is"


def example(readme, language):
    """The first block of code of that language."""
    return re.search(rf"^```{language}\n(.*?)^```", (ROOT / readme / "README.md").read_text(), re.M | re.S).group(1)


def with_url(code, url):
    return re.sub(r"(?:redis://localhost|sqlite:app\.db)", url, code)


def only(pattern):
    found = sorted(DIST.glob(pattern))
    if len(found) != 1:
        raise SystemExit(f"dist has {len(found)} files {pattern}; make packages first")
    return found[0]


def bring(place, *patterns):
    for pattern in patterns:
        file = only(pattern)
        (place / file.name).write_bytes(file.read_bytes())


def installed(root, script, inside, **env):
    """How many seconds it took."""
    began = time.monotonic()
    done = root.run(script, inside, **env)
    assert done.returncode == 0, done.stdout
    return time.monotonic() - began


def says(root, command, inside, **env):
    """Runs an example that takes a lock, and says so; how many seconds it took."""
    began = time.monotonic()
    done = root.run(command, inside, **env)
    assert done.returncode == 0 and SAID in done.stdout, done.stdout
    return time.monotonic() - began


def refused(root, command, inside, *words, **env):
    """Runs what must fail, with a message that has these words."""
    done = root.run(command, inside, **env)
    missing = [word for word in words if word not in done.stdout]
    assert done.returncode != 0 and not missing, f"it ended with {done.returncode}, without {missing}: {done.stdout}"


def times(install, example):
    return f"installed in {install:.1f} s, the example is over after {install + example:.1f} s"
