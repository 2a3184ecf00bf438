"""Everything on one page; and llms.txt, by which language models find their way (https://llmstxt.org)."""

import re

import pages

# What belongs to the project itself is not for its users.
LEFT_OUT = ("Project",)
SUMMARY = (
    "Distributed locks with leases and fencing tokens, and a delayed, de-duplicating, at-least-once task queue. One core in Rust, "
    "packages for Python, Node, PHP and C, and a command line; on Redis, Valkey, or an SQLite file.")


def chosen():
    return {title: places for title, places in pages.SECTIONS.items() if title not in LEFT_OUT}


def write(folder, texts):
    (folder / "everything.md").write_text(one_page(texts))
    (folder / "llms.txt").write_text(index(texts))
    (folder / "llms-full.txt").write_text(
        f"# Stanchion\n\n> {SUMMARY}\n\n" + "\n\n".join(texts[source] for places in chosen().values() for source in places))


def index(texts):
    parts = [f"# Stanchion\n\n> {SUMMARY}\n"]
    for title, places in chosen().items():
        parts.append(f"\n## {title or 'Start'}\n")
        parts += [f"- [{heading(texts[source])}]({place.removesuffix('.md')}.html)" for source, place in places.items()]
    parts.append("\n## Optional\n\n- [Everything on one page](everything.html)\n- [Everything as text](llms-full.txt)\n")
    return "\n".join(parts)


def heading(text):
    return pages.HEADING.search(text)[2]


def one_page(texts):
    """Headings are one level lower, and named by their page, so that links between pages become links within this one."""
    wanted = {source: place for places in chosen().values() for source, place in places.items()}
    names = {source: re.sub(r"\W+", "-", place.removesuffix(".md")) for source, place in wanted.items()}
    parts = ["# Everything on one page\n"]
    for source in wanted:
        found = pages.anchors(texts[source])

        def lower(line, found=found, name=names[source]):
            return f"#{line[1]} {line[2]} {{ #{name}--{next(found)} }}"

        def link(match, source=source):
            return match[1] + inside(source, match[2], names)

        text = re.sub(r"^( *```\w+)[,;][\w,=]+$", r"\1", texts[source], flags=re.M)
        # Notes of several pages have the same numbers.
        text = re.sub(r"\[\^([\w-]+)\]", rf"[^{names[source]}-\1]", text)
        parts.append(f"<a id=\"{names[source]}\"></a>\n")
        parts.append(pages.outside_fences(text, lambda part: pages.HEADING.sub(lower, pages.LINK.sub(link, part))))
    return "\n\n".join(parts)


def inside(source, target, names):
    if re.match(r"\w+:", target):
        return target
    path, _, anchor = target.partition("#")
    page = pages.resolved(source, path) if path else source
    if page in names:
        return f"#{names[page]}--{anchor}" if anchor else f"#{names[page]}"
    # The page is at the top of the site.
    return pages.moved("README.md", page + (f"#{anchor}" if anchor else ""))
