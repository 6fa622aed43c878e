"""Find faults in the pages of a built site."""

import html.parser
import pathlib
import re
import urllib.parse
from collections.abc import Iterator

# Attributes whose addresses a browser loads by itself, and those that a reader follows.
LOADED = {"src", "srcset", "poster", "data"}
FOLLOWED = {"href"}
# All tags of our pages: any other was text between "<" and ">".
TAGS = {
    *("a", "article", "aside", "b", "blockquote", "body", "br", "button", "code", "dd", "details"),
    *("div", "dl", "dt", "em", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6"),
    *("head", "header", "hr", "html", "img", "input", "label", "li", "link", "main", "meta"),
    *("nav", "ol", "p", "path", "picture", "pre", "script", "small", "source", "span", "strong"),
    *("sub", "summary", "sup", "svg", "table", "tbody", "td", "th", "thead", "title", "tr", "ul"),
}


class Page(html.parser.HTMLParser):
    """The tags, ids, links and loaded addresses of a page.

    Args:
        text: its HTML.
    """

    def __init__(self, text: str):
        super().__init__()
        self.tags: set[str] = set()
        self.ids: set[str] = set()
        self.classes: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = {name: value or "" for name, value in attrs}
        self.tags.add(tag)
        self.ids.update(attributes[name] for name in ("id", "name") if name in attributes)
        self.classes.update(attributes.get("class", "").split())
        loaded = [value for name, value in attributes.items() if name in LOADED]
        followed = [value for name, value in attributes.items() if name in FOLLOWED]
        # A browser fetches what <link> names.
        self.loads += loaded + (followed if tag == "link" else [])
        self.links += loaded + followed


def is_foreign(address: str) -> bool:
    """Whether the address is on another host."""
    parts = urllib.parse.urlsplit(address)
    return bool(parts.netloc) or parts.scheme not in ("", "data")


def offences(site: pathlib.Path) -> Iterator[str]:
    """Describe the faults of a site: foreign hosts, broken links, text that was taken for HTML."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        where = path.relative_to(site)
        yield from (f"{where} loads {address}" for address in page.loads if is_foreign(address))
        yield from (f"{where}: <{tag}>" for tag in sorted(page.tags - TAGS))
        if "mermaid" in page.classes:
            yield f"{where}: the theme loads mermaid from a foreign host"
        # The server sends 404.html for any address, so that its links begin at the site's root.
        if path.name != "404.html":
            broken = (link for link in page.links if _is_broken(link, path, pages))
            yield from (f"{where}: no {link}" for link in broken)
    for path in site.rglob("*.css"):
        urls = re.findall(r"(?:url\(|@import)\s*[\"']?([^\"')]+)", path.read_text("utf-8"))
        yield from (f"{path.relative_to(site)} loads {url}" for url in urls if is_foreign(url))


def _is_broken(address, path, pages):
    parts = urllib.parse.urlsplit(address)
    if parts.scheme or parts.netloc:
        return False
    target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target = target / "index.html"
    anchor = urllib.parse.unquote(parts.fragment)
    if target in pages and anchor:
        return anchor not in pages[target].ids
    return not target.is_file()
