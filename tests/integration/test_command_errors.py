"""What users get wrong is told in one line, with exit status 1 or 2 and no traceback."""

import importlib.util

import pytest

RUN = "runs/reverse_words_reversed"
SAVED = "--model=saved_models/reverse_words_reversed"
TEXT = ("train", "--corpus=text_files", "--data_dir=text")

# Pictures are drawn where matplotlib is.
OF_PICTURES = {
    "picture of a blank line": (
        ("visualize", "--picture=head", f"--model={RUN}", "--line= ", "--output=a.svg"),
        b"--line must hold the sentence to look at. Received: --line=' '",
    ),
    "picture of no run": (
        ("visualize", "--picture=curves", "--model=nowhere", "--output=a.svg"),
        b"nowhere holds no trained model",
    ),
    "picture of a SavedModel's weights": (
        (*("visualize", "--picture=positions", "--output=a.svg"), SAVED),
        b"--picture=positions needs the weights and settings of a run. Received: saved_models/",
    ),
}
WRONG = {
    "no model": (("translate",), b"--model"),
    "model path": (("translate", "--model=nowhere"), b"there is no model at nowhere"),
    "broken model": (("translate", "--model=broken"), b"no SavedModel that can be loaded"),
    "empty input": (("translate", f"--model={RUN}", "--input=empty.txt"), b"is empty"),
    "missing input": (("translate", f"--model={RUN}", "--input=absent.txt"), b"absent.txt"),
    "bad UTF-8": (("translate", f"--model={RUN}", "--input=latin1.txt"), b"line 2: must be UTF-8"),
    "huge line": (("translate", f"--model={RUN}", "--input=huge.txt"), b"line 2 has"),
    "search of a SavedModel": (
        ("translate", SAVED, "--coverage_penalty=0.2"),
        b"coverage_penalty=0.2: a SavedModel takes beam_size, length_penalty, length_penalty_fo",
    ),
    "samples of a SavedModel": (
        ("translate", SAVED, "--samples=2"),
        b"samples=2: a SavedModel draws one translation of a line",
    ),
    "precision of a SavedModel": (
        ("translate", SAVED, "--precision=bfloat16"),
        b"its own precision",
    ),
    "precision of another engine": (
        ("export", f"--model_dir={RUN}", "--format=ctranslate2", "--precision=bfloat16"),
        b"leave out --version and --precision",
    ),
    "search of another engine": (
        ("export", f"--model_dir={RUN}", "--format=ctranslate2", "--beam_size=8"),
        b"--beam_size has no effect: ctranslate2 has its own search. Leave it out.",
    ),
    "parameters of trees": (
        (*("evaluate", SAVED), "--evalb_parameters=a.prm"),
        b"--evalb_parameters is for --task=parsing, and saved_models/reverse_words_reversed is of",
    ),
    "tuned coverage": (
        ("tune", f"--model={RUN}", "--coverage_penalty=0.2"),
        b"Received: --beam_sizes=1,2,4,8. Pass --beam_sizes=2,4,8.",
    ),
    "a version twice": (
        ("export", f"--model_dir={RUN}", "--version=1"),
        b"exists: a served version is never changed",
    ),
    "unequal files": ((*TEXT, "--train_prefix=unequal"), b"unequal"),
    "missing side": ((*TEXT, "--train_prefix=onesided"), b"onesided.de"),
    "exports to where nobody writes": (
        ("train", "--flagfile=toy.flags", "--model_dir=p", "--export_dir=/proc/a"),
        b"--export_dir=/proc/a cannot be written: ",
    ),
    "start from nothing": (
        ("train", "--flagfile=toy.flags", "--model_dir=n", "--init_from=nowhere"),
        b"there is no model at nowhere",
    ),
    "start from other sizes": (
        ("train", "--flagfile=toy.flags", "--d_ff=64", "--model_dir=o", f"--init_from={RUN}"),
        b"the sizes of the other",
    ),
    "score without files": (
        ("score", f"--model={RUN}", "--source_file=empty.txt"),
        b"--reference_file are needed",
    ),
    "score unequal files": (
        (
            "score",
            f"--model={RUN}",
            "--source_file=text/unequal.en",
            "--reference_file=text/unequal.de",
        ),
        b"must have as many lines. Received: 3 and 2.",
    ),
    "average nothing": (("average", "--model_dir=text"), b"holds no trained model"),
    "align without files": (
        ("align", f"--model={RUN}"),
        b"--source_file and --reference_file are needed",
    ),
    "hypotheses in a line": (
        ("translate", f"--model={RUN}", "--num_hypotheses=2"),
        b"--num_hypotheses=2 without --json",
    ),
    "split hypotheses": (
        ("translate", f"--model={RUN}", "--json", "--split_sentences"),
        b"--json and --split_sentences exclude each other",
    ),
    "split prefixes": (
        ("translate", f"--model={RUN}", "--prefix_file=text/valid.de", "--split_sentences"),
        b"a prefix belongs to one sentence",
    ),
    "streamed file": (
        ("translate", f"--model={RUN}", "--stream", "--input=text/valid.en"),
        b"leave out --input, --output and",
    ),
    "unequal prefixes": (
        ("translate", f"--model={RUN}", "--input=text/valid.en", "--prefix_file=text/unequal.en"),
        b"must have as many lines as the input. Received: 3 and 2.",
    ),
    "ensemble with a SavedModel": (
        ("translate", f"--model={RUN},saved_models/reverse_words_reversed"),
        b"is a SavedModel: an ensemble is made of runs' folders",
    ),
    "metric": (
        ("evaluate", SAVED, "--metrics=bleu,blue"),
        b"--metrics must be names among bleu, bleu_intl",
    ),
    "unequal baseline": (
        ("evaluate", SAVED, "--baseline_file=text/valid.en"),
        b"must have a line for each reference. Received: text/valid.en with 2 lines, and",
    ),
    "tuned samples": (
        ("tune", f"--model={RUN}", "--samples=1"),
        b"--samples=1 draws translations without a beam. Leave it out",
    ),
    "tuned beams": (
        ("tune", f"--model={RUN}", "--beam_sizes=4,0"),
        b"--beam_sizes must be integers of at least 1, joined by commas, each once. Received: ",
    ),
    "no picture": (
        ("visualize", "--output=a.svg"),
        b"--picture is missing: one of attention, head",
    ),
    "no file of a picture": (
        ("visualize", "--picture=curves", f"--model={RUN}"),
        b"--output must be a file that ends in .png or .svg. Received: --output=-",
    ),
    **(OF_PICTURES if importlib.util.find_spec("matplotlib") else {}),
    "one file of two": (
        ("evaluate", f"--model={RUN}", "--source_file=empty.txt"),
        b"--reference_file",
    ),
}


@pytest.fixture(scope="module")
def shell(toy, tmp_path_factory):
    """A `Shell` in a folder that holds the toy run, and what cannot be read."""
    shell = toy.copy(tmp_path_factory.mktemp("wrong"))
    folder = shell.folder
    (folder / "empty.txt").write_bytes(b"")
    (folder / "latin1.txt").write_bytes(b"a b\nsch\xf6n\n")
    (folder / "huge.txt").write_bytes(b"a b\n" + b"a b c d e " * 2000 + b"\n")
    (folder / "broken").mkdir()
    (folder / "broken" / "saved_model.pb").write_bytes(b"nonsense")
    (folder / "text").mkdir()
    of_two = ("unequal.de", "onesided.en", "valid.en", "valid.de")
    for name, lines in {"unequal.en": 3, **dict.fromkeys(of_two, 2)}.items():
        (folder / "text" / name).write_text("a line\n" * lines, encoding="utf-8")
    return shell


@pytest.fixture(scope="module")
def answers(shell):
    return dict(zip(WRONG, shell.all([command for command, _ in WRONG.values()]), strict=True))


@pytest.mark.parametrize("name", WRONG)
def test_one_clear_line(answers, name):
    answer = answers[name]
    assert answer.returncode in (1, 2)
    assert answer.stderr.count(b"\n") == 1, answer.stderr.decode()
    assert answer.stderr.startswith(b"error: ")
    assert WRONG[name][1] in answer.stderr
    assert b"Traceback" not in answer.stdout + answer.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["model path", "unequal prefixes"])
def test_control_a_process_of_its_own_gives_the_same(shell, answers, name):
    own = shell.process(*WRONG[name][0])
    for part in ("returncode", "stdout", "stderr"):
        assert getattr(own, part) == getattr(answers[name], part)


def test_the_traceback_can_be_had(toy):
    answer = toy("translate", "--model=nowhere", "--traceback")
    assert b"Traceback" in answer.stderr


def test_help_shows_the_command_s_own_flags(toy):
    answer = toy("translate", "--help")
    assert b"--beam_size" in answer.stdout
    assert b"--num_heads" not in answer.stdout
