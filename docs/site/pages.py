"""The pages of the site: the repository's Markdown files, where they lie, and a page of reference
for each package, made from docstrings. A hook of mkdocs; see mkdocs.yml.
"""

import ast
import pathlib
import re

from mkdocs.structure.files import File, Files

ROOT = pathlib.Path(__file__).parents[2]
PAGES = ("*.md", "docs/*.md", "benchmarks/*.md", "saved_models/README.md")
PICTURES = ("docs/**/*.png", "docs/**/*.svg", "benchmarks/**/*.png", "benchmarks/**/*.svg")
# Sources of notebooks are text that README links to.
OTHERS = ("docs/site/site.css", "notebooks/*.py")
# The page of each package, below docs/api/.
REFERENCE = {
    "layers": "keras_transformer.layers",
    "models": "keras_transformer.models",
    "training": "keras_transformer.training",
    "decoding": "keras_transformer.decoding",
    "inference": "keras_transformer.inference",
    "evaluation": "keras_transformer.evaluation",
    "visualization": "keras_transformer.visualization",
    "tasks": "keras_transformer.tasks",
    "pipelines": "pipelines",
    "corpora": "pipelines.corpora",
}


def on_files(files, config):
    """Give mkdocs all files of the site by their path in the repository."""
    of_theme = [file for file in files if file.src_dir != config.docs_dir]
    paths = sorted(path for form in (*PAGES, *PICTURES, *OTHERS) for path in ROOT.glob(form))
    copied = [
        File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path))
        for path in paths
    ]
    reference = [
        File.generated(config, f"docs/api/{name}.md", content=page_of(package))
        for name, package in REFERENCE.items()
    ]
    return Files([*of_theme, *copied, *reference])


def on_page_markdown(markdown, **_):
    """Show the name of a file above its text: "```json mixture.json" is our way to say it."""
    return re.sub(r"^```(\w+) (\S+)$", r'```\1 title="\2"', markdown, flags=re.MULTILINE)


def page_of(package: str) -> str:
    """The Markdown of a package's page: its docstring, and a section for each module.

    Args:
        package: its name, such as "keras_transformer.layers".
    """
    folder = ROOT / package.replace(".", "/")
    docstring = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8")))
    modules = [f"{package}.{stem}" for stem in modules_of(package)]
    sections = [f"::: {module}" for module in modules]
    return "\n\n".join([f"# `{package}`", docstring or "", *sections]) + "\n"


def modules_of(package: str) -> list[str]:
    """Names of a package's modules and of those below it, except packages of their own page."""
    folder = ROOT / package.replace(".", "/")
    found = []
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        own_page = f"{package}.{parts[0]}" in REFERENCE.values()
        if parts[-1] != "__init__" and not own_page:
            found.append(".".join(parts))
    return found
