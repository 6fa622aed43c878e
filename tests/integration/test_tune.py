"""The search that `tune` chooses is the best of those that are measured one by one."""

import json
import re

import pytest
import sacrebleu

from keras_transformer.flagfiles import expand_flagfiles
from keras_transformer.inference.functions import SavedFunctions
from keras_transformer.inference.translator import Translator
from keras_transformer.saved_models.session import SavedModel
from pipelines import corpora

RUN = "runs/reverse_words_reversed"
SAVED = "saved_models/reverse_words_reversed"
# By the steep penalty, translations get longer than they should be.
CELLS = [(beam, alpha) for beam in (1, 2) for alpha in (8, 0)]
TRIED = ("--beam_sizes=1,2", "--length_penalties=8,0")
LINES = 60


@pytest.fixture(scope="module")
def text():
    """Sources and references: the first lines of the validation split."""
    valid = corpora.load(
        "reverse", source_language="words", target_language="reversed", seed=3
    ).valid
    return valid.sources[:LINES], valid.targets[:LINES]


def told(result):
    """What `tune` prints: the table as {(beam, alpha): BLEU}, and the cell that is marked."""
    assert result.returncode == 0, result.stderr.decode()
    assert result.stderr == b""
    printed = result.stdout.decode()
    numbers = re.findall(r"^ +[12]  .*$", printed, flags=re.MULTILINE)
    cells = [cell for row in numbers for cell in row.split()[1:]]
    table = dict(zip(CELLS, cells, strict=True))
    [marked] = [cell for cell, score in table.items() if score.endswith("*")]
    return {cell: float(score.rstrip("*")) for cell, score in table.items()}, marked


def best_of(scores):
    """The cell of the highest score, of equal ones that of the smaller beam."""
    assert len({*scores.values()}) > 1
    return max(scores, key=lambda cell: (scores[cell], -cell[0]))


def test_the_cells_are_those_of_searches_one_by_one_and_the_best_is_written(
    toy_copy, text, monkeypatch
):
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
    result = toy_copy("tune", f"--model={SAVED}", *TRIED, *flags)
    beam, alpha = best_of(expected)
    assert told(result) == (expected, (beam, alpha))
    assert b"  of the first 60 lines of the validation split" in result.stdout
    written = toy_copy.folder / "best.flags"
    wanted = ["--max_length=30", f"--beam_size={beam}", f"--length_penalty={alpha:.1f}"]
    assert expand_flagfiles([f"--flagfile={written}"]) == wanted
    assert f"# {expected[beam, alpha]:.2f} of the first 60 lines" in written.read_text()
    assert "\n#   BLEU, nrefs:1|case:mixed|" in written.read_text()


@pytest.mark.slow
def test_a_run_gives_what_evaluate_gives_cell_by_cell_and_its_flags_serve_translate(toy_copy, text):
    for name, lines in zip(("s.txt", "r.txt"), text, strict=True):
        (toy_copy.folder / name).write_text("".join(f"{line}\n" for line in lines))
    common = (f"--model={RUN}", "--source_file=s.txt", "--reference_file=r.txt")
    commands = [
        ("evaluate", *common, f"--beam_size={beam}", f"--length_penalty={alpha}", "--json")
        for beam, alpha in CELLS
    ]
    answers = [json.loads(result.stdout)["scores"] for result in toy_copy.all(commands)]
    expected = {cell: scores["bleu"]["score"] for cell, scores in zip(CELLS, answers, strict=True)}
    result = toy_copy("tune", *common, *TRIED, "--output=best.flags")
    assert told(result) == (expected, best_of(expected))
    evaluated = toy_copy("evaluate", *common, "--flagfile=best.flags", "--json")
    found = json.loads(evaluated.stdout)["scores"]["bleu"]["score"]
    assert found == max(expected.values())


@pytest.mark.slow
def test_a_beam_that_the_saved_model_would_clamp_is_refused_before_any_search(toy):
    result = toy("tune", f"--model={SAVED}", "--beam_sizes=4,64")
    assert (result.returncode, result.stdout) == (1, b"")
    assert result.stderr.decode() == (
        f"error: beam_size=64: {SAVED}/1 takes at most 32. Pass less, or name the folder of its "
        "run.\n"
    )
