"""The pages: Markdown files of the repository, which are read there, too. Each has one place on the site; links between them
are rewritten to those, and links to other files of the repository go to where it is published.
"""

import posixpath
import re
import unicodedata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REPOSITORY = "https://github.com/stanchion/stanchion"
# Where each comes from, in the order of the navigation.
SECTIONS = {
    "": {"README.md": "index.md"},
    "Guides": {
        f"docs/guides/{name}.md": f"guides/{name}.md" for name in (
            "locks-in-five-minutes", "which-lock", "queue-in-five-minutes", "schedules", "tasks-that-must-not-run-twice",
            "deploys-and-shutdown", "sizing-redis", "sqlite-in-production", "clusters")
    },
    "Moving": {"docs/COMING-FROM.md": "moving/coming-from.md", "docs/MIGRATING.md": "moving/migrating.md"},
    "Manual": {
        "docs/OPERATING.md": "manual/operating.md",
        "docs/OPTIONS.md": "manual/options.md",
        "docs/GUARANTEES.md": "manual/guarantees.md",
        "docs/METRICS.md": "manual/metrics.md",
        "docs/DASHBOARD.md": "manual/dashboard.md",
        "docs/VERSIONS.md": "manual/versions.md",
        "docs/COMPARE.md": "manual/compare.md",
        "docs/GLOSSARY.md": "manual/glossary.md",
    },
    "Languages": {
        "core/README.md": "languages/rust.md",
        "bindings-python/README.md": "languages/python.md",
        "bindings-node/README.md": "languages/node.md",
        "bindings-c/php/README.md": "languages/php.md",
        "bindings-c/README.md": "languages/c.md",
        "cli/README.md": "languages/shell.md",
    },
    "Project": {
        "CHANGELOG.md": "project/changelog.md",
        "CONTRIBUTING.md": "project/contributing.md",
        "SECURITY.md": "project/security.md",
        "docs/DESIGN.md": "project/design.md",
        "docs/FAULTS.md": "project/faults.md",
    },
}
# In the menu, where the heading of the page is not the best.
TITLES = {
    "index.md": "Start", "languages/rust.md": "Rust", "languages/python.md": "Python", "languages/node.md": "Node",
    "languages/php.md": "PHP", "languages/c.md": "C and C++", "languages/shell.md": "Shell",
}
# Those that pages show; on the site they are in pictures/.
PICTURES = "docs/screenshots"
PLACES = {source: place for section in SECTIONS.values() for source, place in section.items()}
# What a tab is called, and what stands in it: the tests of each package run it.
TABS = {"Rust": "rust", "Python": "python", "Node": "ts", "PHP": "php", "C": "c", "Shell": "sh"}
LINK = re.compile(r"(\]\(|^\[[^]^]+\]: )([^)\s]+)", re.M)
FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2 *$", re.M | re.S)
HEADING = re.compile(r"^(#{1,6}) (.+?)(?: #*)?$", re.M)


def texts():
    """The pages that there are: the source's path, its text."""
    return {source: (ROOT / source).read_text() for source in PLACES}


def assembled(source, text):
    """The text as it stands on the site."""
    text = re.sub(r"^( *```\w+)[,;][\w,=]+$", r"\1", text, flags=re.M)
    return outside_fences(text, lambda part: LINK.sub(lambda link: link[1] + moved(source, link[2]), part))


def moved(source, link):
    """Where a link leads on the site."""
    if re.match(r"\w+:|#", link):
        return link
    path, mark, anchor = link.partition("#")
    target = resolved(source, path)
    place = PLACES.get(target) or target.startswith(f"{PICTURES}/") and f"pictures/{posixpath.basename(target)}"
    if place:
        return posixpath.relpath(place, posixpath.dirname(PLACES[source]) or ".") + mark + anchor
    kind = "tree" if (ROOT / target).is_dir() else "blob"
    return f"{REPOSITORY}/{kind}/main/{target}{mark}{anchor}"


def resolved(source, path):
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), path))


def outside_fences(text, change):
    done, at = [], 0
    for fence in FENCE.finditer(text):
        done += [change(text[at:fence.start()]), fence[0]]
        at = fence.end()
    return "".join([*done, change(text[at:])])


def slug(title):
    """As GitHub makes it: the site does the same."""
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title).replace("`", "").replace("*", "")
    kept = "".join(c for c in unicodedata.normalize("NFC", plain).lower() if c.isalnum() or c in " -_")
    return kept.strip().replace(" ", "-")


def anchors(text):
    """Of the headings; the second of one name gets a number."""
    found = {}
    parts = []
    outside_fences(text, lambda part: parts.append(part) or part)
    for heading in HEADING.finditer("\n".join(parts)):
        name = slug(heading[2])
        count = found[name] = found.get(name, -1) + 1
        yield f"{name}-{count}" if count else name


def problems():
    """What is wrong with the pages, without building the site: links that lead nowhere, pages that have no place."""
    everything = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")} - {"docs/site/README.md"}
    yield from (f"{source} has no place in docs/site/pages.py" for source in sorted(everything - set(PLACES)))
    yield from (f"docs/site/pages.py: there is no {source}" for source in PLACES if not (ROOT / source).exists())
    for path in sorted((ROOT / "docs" / "guides").glob("*.md")):
        for label, language in re.findall(r'^=== "([^"]*)"\n\s*^ {4}```(\w+)', path.read_text(), re.M):
            if TABS.get(label) != language:
                yield f"{path.name}: a tab {label} in {language}; the tests run {TABS}"
        if len(re.findall(r'^=== ', path.read_text(), re.M)) != len(re.findall(r"^ {4}```\w+$", path.read_text(), re.M)):
            yield f"{path.name}: each tab has one block of code"
    known = {source: set(anchors((ROOT / source).read_text())) for source in PLACES if (ROOT / source).exists()}
    for source in known:
        links = []
        outside_fences((ROOT / source).read_text(), lambda part: links.extend(LINK.findall(part)) or part)
        for _, link in links:
            if re.match(r"\w+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = resolved(source, path) if path else source
            if not (ROOT / target).exists():
                yield f"{source}: {link}: there is no {target}"
            elif anchor and target in known and anchor not in known[target]:
                yield f"{source}: {link}: {target} has no heading #{anchor}"


def slug_of(title, _separator):
    """For the site's own generator."""
    return slug(title)
