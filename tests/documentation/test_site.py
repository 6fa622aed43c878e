"""The site that `make docs` builds is complete, uses no foreign host, and is reproducible."""

import html.parser
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator

import pytest
from documentation.pages import PAGES, ROOT

pytest.importorskip("mkdocs")
pytest.importorskip("griffe")

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


def part_of_the_site(name):
    """A module of docs/site, which is no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "site" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build(folder):
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1", "SOURCE_DATE_EPOCH": "0"}
    completed = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stdout + completed.stderr


def files_of(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {file.relative_to(folder): file.read_bytes() for file in files}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    build(folder)
    return folder.resolve()


@pytest.mark.slow
def test_the_site_is_whole_and_needs_no_other_host(site):
    assert list(offences(site)) == []


@pytest.mark.slow
def test_the_site_has_each_page_and_each_public_layer(site):
    built = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    for page in PAGES:
        name = page.relative_to(ROOT).with_suffix(".html").as_posix()
        assert name.replace("README", "index") in built
    layers = (site / "docs" / "api" / "layers.html").read_text(encoding="utf-8")
    for name in ("PositionalEmbedding", "MultiHeadAttention", "EncoderLayer", "DecoderLayer"):
        assert re.search(rf'id="keras_transformer\.layers\.\w+\.{name}"', layers), name


@pytest.mark.slow
def test_the_same_sources_give_the_same_site(site, tmp_path):
    build(tmp_path)
    assert files_of(tmp_path) == files_of(site)


@pytest.mark.parametrize(
    ("html", "offence"),
    [
        ('<a href="b.html#here"><a href="https://x.org"><a href="c">', None),
        ('<script src="https://unpkg.com/x.js"></script>', "a.html loads https://unpkg.com/x.js"),
        ('<link rel="preconnect" href="//fonts.gstatic.com">', "a.html loads //fonts.gstatic.com"),
        ('<a href="nowhere.html">', "a.html: no nowhere.html"),
        ('<a href="#nowhere">', "a.html: no #nowhere"),
        ('<a href="b.html#nowhere">', "a.html: no b.html#nowhere"),
        ("<p>in <model_dir>", "a.html: <model_dir>"),
        ('<pre class="mermaid">', "a.html: the theme loads mermaid from a foreign host"),
    ],
)
def test_control_each_fault_of_a_page_is_noticed(html, offence, tmp_path):
    (tmp_path / "a.html").write_text(html)
    (tmp_path / "b.html").write_text('<h1 id="here"><a href="a.html">')
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "index.html").touch()
    assert list(offences(tmp_path)) == ([offence] if offence else [])
    (tmp_path / "a.css").write_text("@font-face { src: url('https://fonts.x.org/a.woff2') }")
    assert list(offences(tmp_path))[-1] == "a.css loads https://fonts.x.org/a.woff2"


def test_each_package_that_users_import_has_a_page_in_the_navigation():
    reference = part_of_the_site("pages").REFERENCE
    assert reference.keys() >= {"layers", "models", "evaluation", "visualization", "tasks"}
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    assert [name for name in reference if f": docs/api/{name}.md\n" not in navigation] == []


def test_each_module_of_a_package_is_on_its_page():
    pages = part_of_the_site("pages")
    assert "attention_variants.restricted" in pages.modules_of("keras_transformer.layers")
    # They have a page of their own.
    assert not any(name.startswith("corpora") for name in pages.modules_of("pipelines"))
    assert "::: pipelines.corpora.treebank" in pages.page_of("pipelines.corpora")


def test_sections_of_docstrings_become_markdown():
    sections = {
        "Attend.\n\nArgs:\n    num_heads: h.": "Attend.\n\nArgs:\n    num_heads: h.",
        "Call arguments:\n    query, key: (B, T), or\n        nothing.\n    causal: booleans.": (
            "**Call arguments:**\n\n- **`query`**, **`key`** – (B, T), or nothing.\n"
            "- **`causal`** – booleans."
        ),
        "Returns:\n    Pairs: two\n    of them.": "**Returns:**\n\nPairs: two\nof them.",
        "Example:\n    if x:\n        f(x)": "**Example:**\n\n```python\nif x:\n    f(x)\n```",
        "Reference: Ba et al. 2016,\n    section 2.": "**Reference:** Ba et al. 2016, section 2.",
    }
    in_markdown = part_of_the_site("docstrings").in_markdown
    assert in_markdown("\n\n".join(sections)) == "\n\n".join(sections.values())
    assert in_markdown("Call arguments: as in `A`.") == "**Call arguments:** as in `A`."
    assert in_markdown("No sections: here.") == "No sections: here."
