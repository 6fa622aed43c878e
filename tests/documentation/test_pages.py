"""What the pages name exists: links, flags, commands, files, extras, targets, commits; and the
pages keep their form.
"""

import ast
import configparser
import functools
import re
import subprocess

import pytest
from command_flags import first_page, flags_of
from documentation.pages import (
    FENCE,
    OTHER_PAGES,
    PAGES,
    README,
    ROOT,
    blocks,
    commands,
    prose,
    words,
)

from keras_transformer.flags.arguments import WrongFlag
from keras_transformer.flags.scopes import every_place

EVERY_PAGE = [*PAGES, *OTHER_PAGES]
README_LINES = 150
PICTURE_BYTES = 150 * 2**10
COLUMNS = 100
# Flags of other programs that the pages name.
OTHER_PROGRAMS = {
    "TF Serving": {"enable_batching", "batching_parameters_file", "model_config_file"},
    "Beam": {"runner", "flink_master"},
    # `--no-cache-dir` up to its dash.
    "pip and useradd, in a Dockerfile": {"no", "uid"},
    "pytest": {"numprocesses", "dist"},
    "http.server": {"directory"},
    "benchmarks that were removed, in LOG.md": {
        *("adapting_minutes", "base", "beams", "best_epoch_below", "channels", "classifier_flags"),
        *("data", "intervals", "learned", "minutes", "orders", "plot", "recipe", "records"),
        *("shares", "side", "silver", "step", "stretch", "test_sentences", "text_dir", "timed"),
        *("trees_dir", "write_default", "write_joined"),
    },
}
# The last commit that has the removed benchmarks of LOG.md.
WITH_REMOVED = "fcb88bf7"

# False in a copy without .git and in a shallow clone.
HISTORY = (
    subprocess.run(
        ["git", "rev-parse", "--is-shallow-repository"], cwd=ROOT, capture_output=True
    ).stdout
    == b"false\n"
)


def text_of(pages):
    return "\n".join(page.read_text(encoding="utf-8") for page in pages)


@functools.cache
def defined_flags():
    """Names of the flags of all commands, and of benchmarks, read from the source."""
    names = {"help", "flagfile"}
    for name, (place, *_) in every_place().items():
        names |= {name, f"no{name}"} if place.option.type is bool else {name}
    for folder in ("keras_transformer", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.AnnAssign) and _is_option(node.value):
                    names.add(node.target.id)
                if not (isinstance(node, ast.Call) and node.args):
                    continue
                function = getattr(node.func, "attr", "") or getattr(node.func, "id", "")
                first = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
                if function == "DEFINE_bool":
                    names |= {first, f"no{first}"}
                elif function.startswith("DEFINE_"):
                    names.add(first)
                elif function == "add_argument":
                    names.add(first.lstrip("-"))
    return names


def _is_option(value):
    return isinstance(value, ast.Call) and getattr(value.func, "id", "") == "option"


def unknown_flags(text):
    defined = defined_flags().union(*OTHER_PROGRAMS.values())
    return sorted(set(re.findall(r"(?<![\w-])--([a-z]\w*)", text)) - defined)


def anchors(text):
    """The anchors of a page: its headings, as GitHub and mkdocs write them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", text), flags=re.MULTILINE)
    words = [re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in headings]
    return {re.sub(r"[\s-]+", "-", word) for word in words}


def broken_links(page, text):
    """Relative links, pictures of <picture>, and anchors that do not exist."""
    broken = []
    links = re.findall(r"\]\(([^)#\s]*)#?([^)]*)\)", text)
    pictures = re.findall(r"(?:src|srcset)=\"([^\"]*)\"", text)
    for target, anchor in [*links, *((picture, "") for picture in pictures)]:
        if "://" in target:
            continue
        path = page.parent / target if target else page
        if not path.exists():
            broken.append(target)
        elif anchor and anchor not in anchors(text if path == page else path.read_text("utf-8")):
            broken.append(f"{target}#{anchor}")
    return broken


def missing_files(text):
    """Files named with a folder in backticks that the repository does not have."""
    named = re.findall(r"`([\w.]+(?:/[\w.]+)+\.(?:py|md|cc|flags|png))`", text)
    rooms = (ROOT, ROOT / "keras_transformer")
    return [name for name in named if not any((room / name).exists() for room in rooms)]


def unknown_commits(text):
    """Words that look like commits of this repository but are none."""
    candidates = sorted(set(re.findall(r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7}\b", text)))
    return [
        word
        for word in candidates
        if subprocess.run(
            ["git", "cat-file", "-e", f"{word}^{{commit}}"], cwd=ROOT, capture_output=True
        ).returncode
    ]


def long_lines(text):
    """Lines of prose and code that are too long; a table's row cannot be broken."""
    return [line for line in text.splitlines() if len(line) > COLUMNS and not line.startswith("|")]


def missing_modules(text):
    """Modules named after `python -m` that do not exist."""
    named = set(re.findall(r"python -m ((?:keras_transformer|pipelines|benchmarks)[\w.]*)", text))
    return [
        name
        for name in sorted(named - {"keras_transformer.NAME"})
        if not (ROOT / name.rstrip(".").replace(".", "/")).with_suffix(".py").exists()
    ]


def was_there(name):
    """Whether a module exists in the commit that has the removed benchmarks."""
    file = f"{WITH_REMOVED}:{name.replace('.', '/')}.py"
    return not subprocess.run(["git", "cat-file", "-e", file], cwd=ROOT).returncode


def missing_extras(text):
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    named = set(re.findall(r"\.\[(\w+)\]", text))
    # The first column of the table of extras.
    table = re.search(r"^\| extra \|.*\n\|---.*\n((?:\|.*\n)+)", text, flags=re.MULTILINE)
    for row in table[1].splitlines() if table else []:
        named |= set(re.findall(r"`(\w+)`", row.split("|")[1]))
    return sorted(named - set(setup["options.extras_require"]))


def missing_targets(text):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, flags=re.MULTILINE))
    return sorted(set(re.findall(r"(?:^|`)make ([\w-]+)", text, flags=re.MULTILINE)) - targets)


def described_commands(text):
    """README's table of commands: {name: its flags}."""
    rows = re.findall(r"^\| `(\w+) ([^`]*)` \|", text, flags=re.MULTILINE)
    return {name: re.findall(r"--(\w+)", usage) for name, usage in rows}


def commands_of_the_package():
    return {
        path.stem
        for path in (ROOT / "keras_transformer").glob("*.py")
        if "flags.run(" in path.read_text(encoding="utf-8")
    }


@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_exists(page):
    text = page.read_text(encoding="utf-8")
    assert broken_links(page, text) == []
    assert unknown_flags(text) == []
    assert missing_files(text) == []
    gone = missing_modules(text)
    if page.name == "CHANGELOG.md":
        # It names programs as they were called then.
        gone = [name for name in gone if not name.startswith("benchmarks.")]
    if page.name == "LOG.md":
        gone = [name for name in gone if HISTORY and not was_there(name)]
    assert gone == []
    assert missing_extras(text) == []
    assert missing_targets(text) == []
    assert long_lines(text) == []


@pytest.mark.skipif(not HISTORY, reason="the commits are not here")
def test_every_commit_that_a_page_cites_is_in_the_repository():
    assert unknown_commits(text_of(EVERY_PAGE)) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_all_code_is_fenced(page):
    text = page.read_text(encoding="utf-8")
    assert text.count("\n```") == 2 * len(blocks(text))
    assert not re.search(r"\n\n {4}\S", prose(text))


def test_the_readme_is_short_and_leads_to_every_page():
    readme = README.read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= README_LINES
    for page in EVERY_PAGE:
        name = str(page.relative_to(ROOT))
        assert page == README or f"]({name})" in readme or page.parent.name == "saved_models"


def pictures(text):
    """The <picture>s of a page: (file for dark pages, file for light pages, alternative text)."""
    dark = r'<source media="\(prefers-color-scheme: dark\)" srcset="(.*)">'
    return re.findall(dark + r'\s*<img src="(.*)" alt="(.*)">', text)


def test_the_site_has_every_page_in_its_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    pages = [path for path in EVERY_PAGE if path.parent.name != "saved_models"]
    names = [path.relative_to(ROOT).as_posix() for path in pages]
    assert [name for name in names if not re.search(rf"[ :]{name}$", navigation, re.M)] == []


def test_the_first_screen_of_the_readme_has_the_two_commands_and_two_pictures():
    screen = "\n".join(README.read_text(encoding="utf-8").splitlines()[:25])
    assert len(pictures(screen)) == 2
    for dark, light, described in pictures(screen):
        assert len(described) >= 20
        for path in (ROOT / dark, ROOT / light):
            assert path.stat().st_size <= PICTURE_BYTES
    assert "make train" in screen
    assert "make test" in screen


def test_the_readme_describes_each_command_with_flags_that_it_has():
    described = described_commands(README.read_text(encoding="utf-8"))
    assert described.keys() == commands_of_the_package()
    for name, flags in described.items():
        page = first_page(name)
        shown = [flag for flag in flags if re.search(rf"--(\[no\])?{flag}\b", page)]
        assert shown + ["flagfile"] * ("flagfile" in flags and "flagfile" not in shown) == flags


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (unknown_flags, "`--beam_sise=4` a--b ---c x--"),
        (missing_files, "`layers/attentoin.py`"),
        (missing_modules, "python -m keras_transformer.transalte"),
        (missing_extras, "pip install -e '.[nothing]'"),
        (missing_extras, "| extra | needed for |\n|---|---|\n| `serve`, `nothing` | all |\n"),
        (missing_targets, "`make everything`"),
        (long_lines, "x" * (COLUMNS + 1)),
    ],
)
def test_control_what_does_not_exist_is_noticed(check, text):
    assert len(check(text)) == 1


@pytest.mark.skipif(not HISTORY, reason="the commits are not here")
def test_control_a_commit_and_a_benchmark_that_never_were_are_noticed():
    assert unknown_commits("commit be9c7e1, defaced 1234567 keras") == ["be9c7e1"]
    assert was_there("benchmarks.paper.scaling")
    assert not was_there("benchmarks.paper.nothing")


def test_control_a_link_to_nowhere_is_noticed():
    good = "[a](docs/training.md#jax) [b](#here) [c](CHANGELOG.md) [d](https://x.org)\n\n## Here"
    assert broken_links(README, good) == []
    text = '[a](docs/training.md#nowhere) [b](#there) [c](docs/nowhere.md) <img src="c.svg">'
    broken = ["docs/training.md#nowhere", "#there", "docs/nowhere.md", "c.svg"]
    assert broken_links(README, text) == broken


# Commands in blocks and sentences of README and docs/ have only flags and values that their program
# accepts with the package's own flag files; nothing is run.
COMMAND = re.compile(r"python -m keras_transformer\.([a-z_]\w*)(.*)", re.DOTALL)
IN_A_SENTENCE = re.compile(r"`(python -m keras_transformer\.[^`]*)`")


def programs(text):
    """The programs that a page calls, each with its arguments."""
    scripts = (block.code for block in blocks(text) if block.language == "sh")
    called = [command for script in scripts for command in commands(script)]
    called += IN_A_SENTENCE.findall(FENCE.sub("", text))
    for match in filter(None, map(COMMAND.search, called)):
        arguments = words(match[2])
        end = next((at for at, word in enumerate(arguments) if word in "<>|"), None)
        yield match[1], arguments[:end]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with the flag files that pages have their reader write."""
    (tmp_path / "search.flags").write_text("--beam_size=4\n", encoding="utf-8")
    (tmp_path / "student.flags").write_text("--num_decoder_layers=1\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page_has_flags_that_its_program_accepts(page, folder):
    for name, arguments in programs(page.read_text(encoding="utf-8")):
        flags_of(name, *arguments)


def test_most_pages_have_commands():
    counts = [len(list(programs(page.read_text(encoding="utf-8")))) for page in PAGES]
    assert sum(counts) > 100
    assert sum(map(bool, counts)) > len(PAGES) / 2


@pytest.mark.parametrize(
    "text",
    [
        "```sh\npython -m keras_transformer.train --flagfile=tiny.flags \\\n  --beam_sise=4\n```\n",
        "```sh\necho a | python -m keras_transformer.translate --patch_size=2 > out\n```\n",
        "Call `python -m keras_transformer.train\n--task=translating` for it.",
    ],
)
def test_control_a_flag_or_value_that_is_not_accepted_is_noticed(text, folder):
    [(name, arguments)] = programs(text)
    with pytest.raises(WrongFlag):
        flags_of(name, *arguments)
