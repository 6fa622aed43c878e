"""Sections of docstrings as Markdown: our own ("Call arguments", "Reference"), and those whose text
mkdocstrings would take apart ("Returns" at each colon). The others are left to it. An extension of
griffe; see mkdocs.yml.
"""

import re
import textwrap

import griffe

# A section's name at the left edge, what stands behind it, and the lines below that are indented.
SECTION = re.compile(
    r"^(Call arguments|Returns|Yields|Example|References?):[ \t]*(.*)\n((?:(?:[ \t]+\S.*)?\n)*)",
    re.MULTILINE,
)


class OwnSections(griffe.Extension):
    """Rewrites the docstring of each object that is loaded."""

    def on_instance(self, *, obj: griffe.Object, **_):
        if obj.docstring:
            obj.docstring.value = in_markdown(obj.docstring.value)


def in_markdown(docstring: str) -> str:
    """A docstring whose sections of ours are Markdown."""
    # A line's end, so that the last section ends as the others do.
    return SECTION.sub(_section, docstring + "\n").rstrip("\n")


def _section(match):
    name, behind, below = match.groups()
    below = textwrap.dedent(below).strip("\n")
    if behind or not below:
        return f"**{name}:** {behind} {below}".rstrip() + "\n\n"
    content = {"Call arguments": _items, "Example": _code}.get(name, str)
    return f"**{name}:**\n\n{content(below)}\n\n"


def _items(below):
    """`name: text` a line, which a longer text continues with more indented lines."""
    items = re.split(r"\n(?=\S)", below)
    return "\n".join(_item(re.sub(r"\s+", " ", item)) for item in items)


def _item(item):
    names, _, text = item.partition(": ")
    marked = ", ".join(f"**`{name}`**" for name in names.split(", "))
    return f"- {marked} – {text}"


def _code(below):
    return f"```python\n{below}\n```"
