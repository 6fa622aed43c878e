"""The options of the commands that translate, tested with the toy model."""

import json
import random
import re

import pytest
import sacrebleu
from integration.conftest import answers_one_by_one

from keras_transformer.flagfiles import expand_flagfiles
from keras_transformer.inference.functions import SavedFunctions
from keras_transformer.inference.translator import Translator
from keras_transformer.saved_models.session import SavedModel
from pipelines import corpora

RUN = "runs/reverse_words_reversed"
SEVERAL = ["a b c! d e! f g h", "", "i j! k l", "m n o"]
PREFIXES = {"a b c": "b", "d e f g": "", "h i j": "p q", "k": "k"}


@pytest.fixture(scope="module")
def sentences():
    draw = random.Random(11)
    return [
        *(" ".join(draw.choices("abcdefghijklmnopqrst", k=draw.randint(1, 9))) for _ in range(30)),
        "",
    ]


@pytest.fixture(scope="module")
def plain(live, sentences):
    return live.translate(sentences)


@pytest.fixture(scope="module")
def written(toy, tmp_path_factory, sentences):
    """The lines that commands printed, by a name for each."""
    shell = toy.copy(tmp_path_factory.mktemp("options"))
    files = {
        "lines": sentences,
        "reversed": map(reverse, sentences),
        "sources": PREFIXES,
        "prefixes": PREFIXES.values(),
    }
    for name, lines in files.items():
        (shell.folder / f"{name}.options").write_text(
            "".join(f"{line}\n" for line in lines), encoding="utf-8"
        )
    checkpoints = sorted((shell.folder / RUN / "checkpoints").glob("*.npz"))[-2:]
    assert len(checkpoints) == 2
    translate, lines = ["translate", f"--model={RUN}"], "--input=lines.options"
    samples = ["--samples=3", "--temperature=3"]
    detail = ["--json", "--num_hypotheses=2", "--decode_tokens=20"]
    sides = ["--source_file=lines.options", "--reference_file=reversed.options"]
    commands = {
        "json": [*translate, "--flagfile=toy.flags", lines, *detail],
        "prefixed": [*translate, "--input=sources.options", "--prefix_file=prefixes.options"],
        "ensemble": ["translate", f"--model={','.join(map(str, checkpoints))}", lines],
        "drawn": [*translate, lines, *samples, "--seed=2"],
        "aligned": ["align", f"--model={RUN}", *sides],
    }
    answers = dict(zip(commands, shell.all(list(commands.values())), strict=True))
    for name, answer in answers.items():
        assert (answer.returncode, answer.stderr) == (0, b""), (name, answer.stderr.decode())
    return {name: answer.stdout.decode().split("\n")[:-1] for name, answer in answers.items()}


@pytest.fixture(scope="module")
def details(written):
    return [json.loads(line) for line in written["json"]]


def reverse(line):
    return " ".join(reversed(line.split()))


def test_in_small_batches_and_as_json_the_best_hypothesis_comes_first(details, sentences, plain):
    assert [line["source"] for line in details] == sentences
    assert [line["hypotheses"][0]["translation"] for line in details] == plain


def test_json_has_hypotheses_with_scores_and_log_probabilities_of_pieces(details):
    for line in details:
        first, second = line["hypotheses"]
        assert first["score"] >= second["score"]
        assert first["pieces"] != second["pieces"]
        for hypothesis in (first, second):
            pieces, logarithms = zip(*hypothesis["pieces"], strict=True)
            log_probability = hypothesis["log_probability"]
            assert sum(logarithms) == pytest.approx(log_probability, abs=1e-5 * len(pieces))
            # Wu et al. 2016, equation 14, with the paper's alpha.
            score = log_probability / ((5 + len(pieces)) / 6) ** 0.6
            assert hypothesis["score"] == pytest.approx(score, abs=1e-4)
            assert pieces[-1] == "</s>"
            text = "".join(pieces[:-1]).replace("▁", " ").strip()
            assert not line["source"] or text == hypothesis["translation"]


def test_a_translation_begins_with_its_prefix(written, live):
    pairs = zip(written["prefixed"], PREFIXES.values(), strict=True)
    assert all(translation.startswith(prefix) for translation, prefix in pairs)
    # A control: without prefixes they do not.
    free = zip(live.translate(list(PREFIXES)), PREFIXES.values(), strict=True)
    assert not all(translation.startswith(prefix) for translation, prefix in free)


def test_checkpoints_joined_by_a_comma_are_an_ensemble(written, sentences):
    right = sum(map(str.__eq__, written["ensemble"], map(reverse, sentences)))
    assert right > 0.8 * len(sentences)


def test_the_seed_and_the_flags_decide_the_samples(toy, written, sentences, plain):
    """With any of these flags left out the samples would differ; the default seed is 1."""
    drawing = Translator.load(toy.folder / RUN, samples=3, temperature=3.0, seed=2)
    samples = drawing.translate(sentences)
    # At such a temperature samples may contain line ends, which files of lines show as spaces.
    lines = [re.sub(r"\r\n?|\n", " ", sample.rstrip("\r\n")) for sample in samples]
    assert lines == written["drawn"] != plain
    assert written["drawn"][-1] == ""


def test_each_target_word_has_a_link_to_a_source_word(written, sentences):
    for links, sentence in zip(written["aligned"], sentences, strict=True):
        pairs = [tuple(map(int, link.split("-"))) for link in links.split()]
        words = len(sentence.split())
        assert [target for _, target in pairs] == list(range(words))
        assert all(0 <= source < words for source, _ in pairs)


def test_a_streamed_line_is_answered_before_the_next_and_split_into_sentences(toy, live):
    command = ("translate", f"--model={RUN}", "--stream", "--split_sentences")
    answers = answers_one_by_one(toy, SEVERAL, *command)
    expected = [" ".join(live.translate(re.split("(?<=!) ", line))) + "\n" for line in SEVERAL]
    assert answers == expected
    assert answers != [f"{translation}\n" for translation in live.translate(SEVERAL)]


# `tune` chooses the best of the searches that these tests measure one by one.
SAVED = "saved_models/reverse_words_reversed"
# The steep penalty makes translations too long.
CELLS = [(beam, alpha) for beam in (1, 2) for alpha in (8, 0)]
TRIED = ("--beam_sizes=1,2", "--length_penalties=8,0")
LINES = 60


@pytest.fixture(scope="module")
def text():
    """Sources and references: the first lines of the validation split."""
    sides = {"source_language": "words", "target_language": "reversed"}
    valid = corpora.load("reverse", **sides, seed=3).valid
    return valid.sources[:LINES], valid.targets[:LINES]


def cells_of(result):
    """The table that `tune` prints, as {(beam, alpha): BLEU}, and its marked cell."""
    assert result.stderr == b""
    printed = result.stdout.decode()
    numbers = re.findall(r"^ +[12]  .*$", printed, flags=re.MULTILINE)
    cells = [cell for row in numbers for cell in row.split()[1:]]
    table = dict(zip(CELLS, cells, strict=True))
    [marked] = [cell for cell, score in table.items() if score.endswith("*")]
    return {cell: float(score.rstrip("*")) for cell, score in table.items()}, marked


def best_of(scores):
    """The cell of the highest score; with equal scores that of the smaller beam."""
    assert len({*scores.values()}) > 1
    return max(scores, key=lambda cell: (scores[cell], -cell[0]))


def test_cells_are_those_of_single_searches_and_the_best_is_written(toy_copy, text, monkeypatch):
    sources, references = text
    # One session serves the translators of all cells.
    signature = SavedModel(toy_copy.folder / SAVED / "1", ("translate",))
    monkeypatch.setattr(SavedFunctions, "_load", lambda self, name: signature)
    expected = {}
    for beam, alpha in CELLS:
        options = {"beam_size": beam, "length_penalty": float(alpha), "max_length": 30}
        alone = Translator.load(toy_copy.folder / SAVED, **options).translate(sources)
        expected[beam, alpha] = round(sacrebleu.corpus_bleu(alone, [references]).score, 2)
    flags = ("--max_length=30", f"--sentences={LINES}", "--output=best.flags")
    result = toy_copy.run("tune", f"--model={SAVED}", *TRIED, *flags)
    beam, alpha = best_of(expected)
    assert cells_of(result) == (expected, (beam, alpha))
    assert b"  of the first 60 lines of the validation split" in result.stdout
    written = toy_copy.folder / "best.flags"
    expected_flags = ["--max_length=30", f"--beam_size={beam}", f"--length_penalty={alpha:.1f}"]
    assert expand_flagfiles([f"--flagfile={written}"]) == expected_flags
    assert f"# {expected[beam, alpha]:.2f} of the first 60 lines" in written.read_text()
    assert "\n#   BLEU, nrefs:1|case:mixed|" in written.read_text()
