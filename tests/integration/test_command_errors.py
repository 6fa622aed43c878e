"""Errors of users are reported in one line, with exit status 1 or 2 and no traceback."""

import importlib.util
import shlex

import pytest

RUN = "runs/reverse_words_reversed"
SAVED = "--model=saved_models/reverse_words_reversed"
OF_RUN = f"--model={RUN}"
UNEQUAL = f"translate {OF_RUN} --input=text/valid.en --prefix_file=text/unequal.en"
# {command: a part of its error message}; those of pictures need matplotlib.
OF_PICTURES = {
    f"visualize --picture=head {OF_RUN} '--line= ' --output=a.svg": (
        b"--line must hold the sentence to look at. Received: --line=' '"
    ),
    "visualize --picture=curves --model=n --output=/proc/a.svg": b"=/proc/a.svg cannot be written",
    "visualize --picture=patches --model=n --png=text/a.png --output=text/a.png": (
        b"--output=text/a.png is read, and would be lost. Name another file."
    ),
    **{
        f"visualize --picture={picture} --output=a.svg {SAVED}": (
            b"--picture=%s needs the weights, settings or history of a run. Received: saved_models/"
            % picture.encode()
        )
        for picture in ("positions", "curves")
    },
}
# Commands that end with exit status 1, not 2.
STATUS_1 = {
    "train --flagfile=toy.flags --d_model=32": b"d_model was 64, now 32",
    f"parse {OF_RUN}": (
        b"error: runs/reverse_words_reversed must be a model of the task parsing. Received: one of "
        b"the task translation. Try `translate`, `parse` (parsers), `generate` (language models) or"
    ),
    "import_model --model_dir=r": b"--from is missing",
    "import_model --from=text --model_dir=runs": b"runs exists. Name another",
    "import_model --from=text --model_dir=/proc/r": b"--model_dir=/proc/r cannot be written: ",
    "import_model --from=text --model_dir=r --export_dir=r/e": b"--export_dir must lie outside of",
    "import_model --from=nowhere --model_dir=r": (
        b"nowhere must be a folder with config.json (Hugging Face's), decoder.yml (Marian's) or "
    ),
}
READ = b"--output=text/../text/valid.en is read, and would be lost. Name another file."
WRONG = {
    **STATUS_1,
    "translate": b"--model",
    "translate --model=nowhere": b"there is no model at nowhere",
    f"translate {OF_RUN} --input=empty.txt": b"is empty",
    f"translate {OF_RUN} --input=absent.txt": b"absent.txt",
    f"translate {OF_RUN} --input=latin1.txt": b"line 2: must be UTF-8",
    f"translate {OF_RUN} --input=huge.txt": b"line 2 has",
    f"translate {OF_RUN} --input=huge.txt --split_sentences": b"error: a sentence of line 2 has",
    f"translate {OF_RUN} --input=huge.json": b"error: line 3 has",
    f"export --model_dir={RUN} --format=ctranslate2 --precision=bfloat16": (
        b"leave out --version and --precision"
    ),
    f"evaluate {SAVED} --evalb_parameters=a.prm": (
        b"--evalb_parameters is for --task=parsing, and saved_models/reverse_words_reversed is of"
    ),
    "train --flagfile=toy.flags --model_dir=p --export_dir=/proc/a": (
        b"--export_dir=/proc/a cannot be written: "
    ),
    "distill --teacher=a --model_dir=p --output_dir=/proc/a": b"--output_dir=/proc/a cannot be",
    f"train --flagfile=toy.flags --d_ff=64 --model_dir=o --init_from={RUN}": (
        b"Leave it out to inherit it."
    ),
    f"score {OF_RUN} --source_file=empty.txt": b"--reference_file are needed",
    f"score {OF_RUN} --source_file=text/unequal.en --reference_file=text/unequal.de": (
        b"must have as many lines. Received: 3 and 2."
    ),
    "average --model_dir=text": b"holds no trained model",
    f"align {OF_RUN}": b"--source_file and --reference_file are needed",
    f"translate {OF_RUN} --num_hypotheses=2": b"--num_hypotheses=2 without --json",
    f"translate {OF_RUN} --json --split_sentences": (
        b"--json and --split_sentences exclude each other"
    ),
    f"translate {OF_RUN} --prefix_file=text/valid.de --split_sentences": (
        b"a prefix belongs to one sentence"
    ),
    f"translate {OF_RUN} --stream --input=text/valid.en": b"leave out --input, --output and",
    **{
        f"{command} --model=nowhere --{name}=text/valid.en --output=text/../text/valid.en": READ
        for command, name in (
            *(("translate", "input"), ("translate", "prefix_file"), ("score", "source_file")),
            *(("tune", "reference_file"), ("translate --input=text/valid.de", "glossary")),
        )
    },
    UNEQUAL: b"must have as many lines as the input. Received: 3 and 2.",
    f"translate {OF_RUN},saved_models/reverse_words_reversed": (
        b"is a SavedModel: an ensemble is made of runs' folders"
    ),
    f"evaluate {SAVED} --metrics=bleu,blue": b"--metrics=bleu,blue: must be some of bleu, bleu_",
    f"evaluate {SAVED} --baseline_file=text/valid.en": (
        b"must have a line for each reference. Received: text/valid.en with 2 lines, and"
    ),
    f"tune {OF_RUN} --beam_sizes=4,0": (
        b"--beam_sizes must be integers from 1 to 1000, joined by commas, each once. Received: "
    ),
    "visualize --output=a.svg": b"--picture is missing: one of attention, head",
    f"evaluate {OF_RUN} --source_file=empty.txt": b"--reference_file",
    **(OF_PICTURES if importlib.util.find_spec("matplotlib") else {}),
}


@pytest.fixture(scope="module")
def shell(toy, tmp_path_factory):
    """A `Shell` in a folder with the toy run and unreadable files."""
    shell = toy.copy(tmp_path_factory.mktemp("wrong"))
    folder = shell.folder
    (folder / "empty.txt").write_bytes(b"")
    (folder / "latin1.txt").write_bytes(b"a b\nsch\xf6n\n")
    (folder / "huge.txt").write_bytes(b"a b\n" + b"a b c d e " * 2000 + b"\n")
    (folder / "huge.json").write_bytes(b'["a b",\n\n"' + b"a b c d e " * 2000 + b'"]\n')
    (folder / "text").mkdir()
    of_two = ("unequal.de", "valid.en", "valid.de", "a.png")
    for name, lines in {"unequal.en": 3, **dict.fromkeys(of_two, 2)}.items():
        (folder / "text" / name).write_text("a line\n" * lines, encoding="utf-8")
    return shell


@pytest.fixture(scope="module")
def answers(shell):
    return dict(zip(WRONG, shell.all([*map(shlex.split, WRONG)]), strict=True))


@pytest.mark.parametrize("typed", WRONG, ids=str)
def test_the_error_is_one_line(answers, typed):
    answer = answers[typed]
    assert answer.returncode in ((1,) if typed in STATUS_1 else (1, 2))
    assert answer.stderr.count(b"\n") == 1, answer.stderr.decode()
    assert answer.stderr.startswith(b"error: ")
    assert WRONG[typed] in answer.stderr
    assert b"Traceback" not in answer.stdout + answer.stderr


@pytest.mark.slow
@pytest.mark.parametrize("typed", ["translate --model=nowhere", UNEQUAL])
def test_control_a_process_of_its_own_prints_the_same(shell, answers, typed):
    own = shell.process(*shlex.split(typed))
    for part in ("returncode", "stdout", "stderr"):
        assert getattr(own, part) == getattr(answers[typed], part)


def test_traceback_is_shown_on_request(toy):
    answer = toy("translate", "--model=nowhere", "--traceback")
    assert b"Traceback" in answer.stderr
