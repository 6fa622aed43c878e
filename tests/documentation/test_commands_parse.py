"""Each command of README and docs/, in a block or in a sentence, has only flags and values that its
program takes with the package's own flag files; nothing is run.
"""

import re

import pytest
from command_flags import flags_of
from documentation.pages import FENCE, PAGES, blocks, commands, words

from keras_transformer.flags.arguments import WrongFlag

COMMAND = re.compile(r"python -m keras_transformer\.([a-z_]\w*)(.*)", re.DOTALL)
IN_A_SENTENCE = re.compile(r"`(python -m keras_transformer\.[^`]*)`")


def programs(text):
    """The programs that a page calls, each with its arguments."""
    called = [
        one for block in blocks(text) if block.language == "sh" for one in commands(block.code)
    ]
    called += IN_A_SENTENCE.findall(FENCE.sub("", text))
    for found in filter(None, map(COMMAND.search, called)):
        arguments = words(found[2])
        end = next((at for at, word in enumerate(arguments) if word in "<>|"), None)
        yield found[1], arguments[:end]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with the flag files that pages have their reader write."""
    (tmp_path / "search.flags").write_text("--beam_size=4\n", encoding="utf-8")
    (tmp_path / "student.flags").write_text("--num_decoder_layers=1\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page_has_flags_that_its_program_takes(page, folder):
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
def test_control_a_flag_or_value_that_is_not_taken_is_noticed(text, folder):
    [(name, arguments)] = programs(text)
    with pytest.raises(WrongFlag):
        flags_of(name, *arguments)
