"""The command draws each picture of a trained run completely, in either theme."""

import re
from xml.etree import ElementTree

import pytest

from keras_transformer.visualization.theme import THEMES

pytestmark = pytest.mark.slow
RUN = "runs/reverse_words_reversed"
SAVED = "saved_models/reverse_words_reversed"
LINE = "--line=a b c d"
# {name: (flags, output)} of each picture; None for output that a test of its own reads.
PICTURES = {
    "attention": (["--picture=attention", f"--model={RUN}", LINE, "--stack=encoder"], "d c b a\n"),
    "head": (
        ["--picture=head", f"--model={RUN}", LINE, "--translation=d c b a", "--from_word=c"],
        "",
    ),
    "pieces": (["--picture=alignment", f"--model={SAVED}", LINE, "--pieces"], "d c b a\n"),
    "positions": (["--picture=positions", f"--model={RUN}"], ""),
    "n_best": (["--picture=n_best", f"--model={RUN}", LINE, "--beam_size=3"], ""),
    "learning_rate": (["--picture=learning_rate", "--schedules=toy.flags,base.flags"], ""),
    "curves": (["--picture=curves", f"--model={RUN}"], ""),
    "lengths": (["--picture=lengths", f"--model={RUN}"], ""),
    "heads": (
        [
            "--picture=heads",
            f"--model={RUN}",
            "--measured_sentences=5",
            "--ablate",
            "--trees=a.trees",
        ],
        None,
    ),
}


@pytest.fixture(scope="module")
def pictures(toy, tmp_path_factory):
    """The folder with the pictures, and the completed processes of the commands."""
    pytest.importorskip("matplotlib")
    shell = toy.copy(tmp_path_factory.mktemp("pictures"))
    (shell.folder / "a.trees").write_text("(S (NP (N a) (N b)) (V c))\n")
    # Alternate between both kinds of file and both themes.
    commands = {}
    for place, (name, (flags, _)) in enumerate(PICTURES.items()):
        form, theme = (("svg", "light"), ("png", "dark"))[place % 2]
        commands[name] = ["visualize", *flags, f"--output={name}.{form}", f"--theme={theme}"]
    return shell.folder, dict(zip(commands, shell.all(commands.values()), strict=True))


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_complete(pictures, name):
    folder, answers = pictures
    answer = answers[name]
    assert (answer.returncode, answer.stderr) == (0, b""), answer.stderr.decode()
    printed = PICTURES[name][1]
    assert printed is None or answer.stdout.decode() == printed
    [file] = folder.glob(f"{name}.*")
    if file.suffix == ".png":
        assert file.read_bytes().endswith(b"IEND\xaeB`\x82")
        return
    picture = file.read_text(encoding="utf-8")
    assert ElementTree.fromstring(picture).tag.endswith("svg")
    assert THEMES["light"].paper in picture


def test_each_head_has_a_row(pictures):
    _, answers = pictures
    printed = answers["heads"].stdout.decode()
    assert re.match(
        r"in its phrase, by chance: 0\.\d\d\nhead .* in its phrase  BLEU lost\n", printed
    )
    rows = re.findall(r"^(encoder|decoder|cross) +1\.([1-4]) ", printed, flags=re.MULTILINE)
    assert rows == [
        (stack, str(head)) for stack in ("encoder", "decoder", "cross") for head in range(1, 5)
    ]
