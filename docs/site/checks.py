"""Of the built site: every link within it leads somewhere, and no page loads anything from elsewhere."""

import re
from html.parser import HTMLParser
from urllib.parse import unquote

# What a browser fetches by itself.
LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("video", "src"), ("audio", "src")}
RELATIONS = {"stylesheet", "icon", "shortcut icon", "preload", "prefetch", "preconnect", "dns-prefetch", "modulepreload"}
ELSEWHERE = re.compile(r"(?:https?:)?//", re.I)


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loaded = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        self.loaded += [given[name] for one, name in LOADED if one == tag and given.get(name)]
        if tag == "link" and set((given.get("rel") or "").lower().split(",")) & RELATIONS:
            self.loaded.append(given.get("href") or "")


def problems(site):
    """What is wrong; and how many links were followed."""
    found, followed = [], 0
    pages = {path: Page(path.read_text(errors="replace")) for path in site.rglob("*.html")}
    for path, page in pages.items():
        name = path.relative_to(site)
        found += [f"{name} loads {url}" for url in page.loaded if ELSEWHERE.match(url)]
        # A server shows it at any address: its links begin at the root.
        if name.name == "404.html":
            continue
        # What rustdoc and TypeDoc make links well to itself; its pages of sources are large.
        if name.parts[0] == "reference" and len(name.parts) > 2:
            continue
        for link in page.links:
            if re.match(r"\w+:", link) or link.startswith("//"):
                continue
            followed += 1
            target, _, anchor = link.partition("#")
            place = (path.parent / unquote(target)).resolve() if target else path
            place = place / "index.html" if place.is_dir() else place
            if not place.exists():
                found.append(f"{name}: {link}: there is no such page")
            elif anchor and place in pages and unquote(anchor) not in pages[place].ids:
                found.append(f"{name}: {link}: there is no such place on that page")
    for style in site.rglob("*.css"):
        urls = re.findall(r"url\(['\"]?([^)'\"]+)|@import ['\"]([^'\"]+)", style.read_text(errors="replace"))
        found += [f"{style.relative_to(site)} loads {url}" for pair in urls for url in pair if ELSEWHERE.match(url)]
    return found, followed
