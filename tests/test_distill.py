"""`distill`: the teachers, which are fakes here, translate a text, and a student learns it in a
mixture.
"""

import json

import numpy as np
import pytest
from command_flags import flags_of
from shell import Shell
from token_lists import pairs_of

from keras_transformer import distill
from keras_transformer.inference import synthetic
from pipelines import corpora
from pipelines.corpora.protected_text import protect
from pipelines.vocabularies.protected_spans import ProtectedSpans

PAIRS = [("a b", "b a"), ("c d", "d c"), ("e {x}", "{x} e")]
ANSWERS = {"b a": "a b", "d c": "c c", "{x} e": "f {x}", "a b": "b b", "c d": "d c"}
TEACHERS = {"forth": ("en", "de"), "back": ("de", "en"), "of_another": (None, None)}


class Teacher:
    """Answers by a table, records its calls, and can be killed."""

    calls: list
    lines_left = 100

    def __init__(self, path, **options):
        self.how = (path, options)

    def translate(self, lines, **how):
        Teacher.lines_left -= len(lines)
        if Teacher.lines_left < 0:
            raise KeyboardInterrupt
        Teacher.calls.append((*self.how, lines))
        if "samples" in self.how[1]:
            return [f"x {self.how[1]['seed']}"] * len(lines)
        return [ANSWERS.get(line, "g") for line in lines]


@pytest.fixture(autouse=True)
def trained(tmp_path, monkeypatch):
    """The arguments of each training, after a corpus of three pairs was written."""
    for prefix in ("train", "valid", "test"):
        for place, language in enumerate(("en", "de")):
            lines = "".join(f"{pair[place]}\n" for pair in PAIRS)
            (tmp_path / f"{prefix}.{language}").write_text(lines)
    trained = []
    Teacher.calls = []
    Teacher.lines_left = 100
    monkeypatch.setattr(synthetic.Translator, "load", Teacher)
    monkeypatch.setattr(synthetic, "description_of", description_of)
    monkeypatch.setattr(synthetic, "weights_of_runs", lambda path: [])
    monkeypatch.setattr("keras_transformer.train.train", lambda *_, **how: trained.append(how))
    monkeypatch.chdir(tmp_path)
    return trained


def description_of(path):
    if path not in TEACHERS:
        raise FileNotFoundError(f"there is no model at {path}")
    return {"corpus": dict(zip(synthetic.LANGUAGES, TEACHERS[path], strict=True))}


def run(*arguments):
    text = ("--corpus=text_files", "--data_dir=.", "--model_dir=student")
    distill.main(flags_of("distill", *text, *arguments))


def learned(trained):
    """The corpus of the mixture that a student was trained on last."""
    mixture = trained[-1]["mixture"]
    assert trained[-1]["corpus"] == "mixture"
    languages = {"source_language": None, "target_language": None}
    return corpora.load("mixture", mixture=mixture, **languages)


def calls():
    return [(path.rpartition("/")[2], options) for path, options, _ in Teacher.calls]


def test_a_student_learns_the_teachers_translations_in_place_of_the_references(trained):
    run("--teacher=forth", "--teacher_beam_size=2")
    corpus = learned(trained)
    assert pairs_of(corpus.train) == [("a b", "b b"), ("c d", "d c"), ("e {x}", "g")]
    assert pairs_of(corpus.valid) == pairs_of(corpus.test) == PAIRS
    assert corpus.weights is None
    assert calls() == [("forth", {"beam_size": 2})]
    # The control: with the real pairs, one that they have already is left out.
    run("--teacher=forth", "--real_weight=0.5", "--output_dir=both")
    corpus = learned(trained)
    assert pairs_of(corpus.train) == [*PAIRS, ("a b", "b b"), ("e {x}", "g")]
    assert corpus.weights.tolist() == [0.5] * 3 + [1] * 2


def test_both_teachers_diversify_the_corpus(trained, capsys):
    run("--teacher=forth", "--back_translate=back")
    corpus = learned(trained)
    back = [("x 1", "b a"), ("x 2", "b a"), ("c c", "d c"), ("x 1", "d c"), ("x 2", "d c")]
    back += [("f {x}", "{x} e"), ("x 1", "{x} e"), ("x 2", "{x} e")]
    assert pairs_of(corpus.train) == [*PAIRS, ("a b", "b b"), ("e {x}", "g"), *back]
    assert corpus.weights.tolist() == [1] * 3 + [0.5] * 2 + [0.375] * 8
    drawing = {"samples": 1, "temperature": 0.7}
    seeds = [("back", {**drawing, "seed": seed}) for seed in (1, 2)]
    assert calls() == [("forth", {}), ("back", {}), *seeds]
    assert "2 pairs of forward translation, 8 of backward translation" in capsys.readouterr().out


def test_text_in_one_language_is_translated_by_the_teacher_that_reads_it(trained, tmp_path):
    (tmp_path / "more.de").write_text("h\n\nd c\n")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "more.de").write_text("k\n")
    files = "--monolingual=more.de,a/more.de"
    run("--back_translate=back", files, "--notraining_text")
    corpus = learned(trained)
    back = [("g", "h"), ("x 1", "h"), ("x 2", "h"), ("c c", "d c"), ("x 1", "d c"), ("x 2", "d c")]
    back += [("g", "k"), ("x 1", "k"), ("x 2", "k")]
    assert pairs_of(corpus.train) == [*PAIRS, *back]
    (tmp_path / "more.en").write_text("i\n")
    run("--teacher=forth", "--monolingual=more.en", "--output_dir=forth_text")
    assert pairs_of(learned(trained).train)[2:] == [("e {x}", "g"), ("i", "g")]


def test_spans_that_a_teacher_put_back_are_protected_again(trained):
    run("--back_translate=back", "--drawn_translations=0")
    text = protect(learned(trained), ProtectedSpans(protect=("placeholders",)), strict=True)
    assert pairs_of(text.corpus.train)[-1] == ("f {x}", "{x} e")
    assert "{x}" not in text.train.sources[-1]
    # The control: the forward teacher lost the span.
    run("--teacher=forth", "--output_dir=lost")
    with pytest.raises(ValueError, match="unequal protected spans"):
        protect(learned(trained), ProtectedSpans(protect=("placeholders",)), strict=True)


def test_a_command_that_was_killed_translates_nothing_twice(trained, monkeypatch, tmp_path):
    monkeypatch.setattr(synthetic, "SHARD_LINES", 1)
    command = ("--teacher=forth", "--back_translate=back")
    run(*command, "--output_dir=whole")
    once = sorted(map(repr, Teacher.calls))
    Teacher.calls = []
    for left in (2, 3, 1):
        Teacher.lines_left = left
        with pytest.raises(KeyboardInterrupt):
            run(*command, "--output_dir=killed")
    Teacher.lines_left = 100
    run(*command, "--output_dir=killed")
    assert sorted(map(repr, Teacher.calls)) == once
    whole, killed = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir() if path.is_file()}
        for name in ("whole", "killed")
    )
    assert len(whole) == 5
    assert killed == whole
    # The controls: a teacher of another search, or one that learned more, makes others.
    with pytest.raises(ValueError, match="made with other model"):
        run(*command, "--output_dir=killed", "--teacher_beam_size=1")
    monkeypatch.setattr(synthetic, "weights_of_runs", lambda path: ["of others"])
    with pytest.raises(ValueError, match="made with other model"):
        run(*command, "--output_dir=killed")


def test_a_text_with_line_breaks_gives_no_synthetic_pair(tmp_path, capsys):
    synthetic.write_lines(tmp_path / "x", ["a", "b\nc", "d"])
    translations = [{1: "A", 2: "", 3: "D"}]
    assert synthetic.new_pairs(tmp_path / "x", translations, False, ()) == [("a", "A"), ("d", "D")]
    assert capsys.readouterr().out.startswith(f"{tmp_path / 'x'}: 1 left out for an empty ")
    assert synthetic.new_pairs(tmp_path / "x", translations, True, {("D", "d")}) == [("A", "a")]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "--teacher or --back_translate is missing"),
        (["--teacher=nowhere"], "there is no model at nowhere"),
        (["--teacher=back"], "--teacher must translate en into de. Received: back, which trans"),
        (["--back_translate=forth"], "--back_translate must translate de into en. Received: forth"),
        (["--teacher=forth", "--monolingual=none.en"], "No such file or directory: 'none.en'"),
        (["--teacher=forth", "--monolingual=empty.en"], "--monolingual: empty.en holds no text"),
        (["--teacher=forth", "--monolingual=more.de"], "must name files whose names end in .en"),
        (["--teacher=forth", "--keep_best=f1"], "--keep_best must be one of bleu, cross_entropy."),
        (["--teacher=forth", "--vocabulary_from=nowhere"], "there is no model at nowhere: neither"),
        (["--teacher=forth", "--init_from=.", "--adapter=nowhere"], "there is no model at nowhere"),
        (["--teacher=forth", "--freeze=quer"], "--freeze=quer is no layer or weight of this model"),
        (
            ["--teacher=forth", "--init_from=.", "--lora_rank=2", "--lora_on=quer"],
            "--lora_on=quer is no matrix of this model to adapt. It has outer, inner, query, key, ",
        ),
        (["--teacher=forth", "--notraining_text"], "is for --monolingual. Name its files"),
    ],
)
def test_wrong_flags_are_refused_in_one_line(arguments, expected, trained, tmp_path):
    (tmp_path / "empty.en").write_text("\n \n")
    (tmp_path / "more.de").write_text("a\n")
    (tmp_path / "model.json").write_text("{}")
    with pytest.raises((ValueError, OSError)) as raised:
        run(*arguments)
    assert expected in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not Teacher.calls
    assert not trained


def test_the_corpus_s_own_folder_may_be_the_output_s(trained, tmp_path):
    (tmp_path / "train.en").write_bytes(b"a b\r\nc d\r\ne {x}\r\n")
    run("--teacher=forth", "--output_dir=.")
    assert len(learned(trained).train) == 3
    assert (tmp_path / "train.en").read_bytes() == b"a b\r\nc d\r\ne {x}\r\n"


def test_a_folder_of_another_run_is_refused_before_the_work(trained, tmp_path):
    (tmp_path / "student" / "checkpoints").mkdir(parents=True)
    (tmp_path / "student" / "checkpoints" / "last-000000030.npz").touch()
    description = tmp_path / "student" / "model.json"
    description.write_text('{"corpus": {"name": "text_files"}}')
    with pytest.raises(ValueError, match=r"of the corpus text_files\. Name another --model_dir"):
        run("--teacher=forth")
    assert not Teacher.calls
    description.write_text('{"corpus": {"name": "mixture"}}')
    run("--teacher=forth")
    assert trained


def test_a_teacher_of_unknown_languages_is_accepted(trained):
    run("--teacher=of_another")
    assert len(learned(trained).train) == 3


@pytest.mark.parametrize("name", ["mixture", "records"])
def test_a_corpus_that_is_no_member_is_refused_before_the_work(name, tmp_path):
    settings = {"name": name, "source_language": "en", "target_language": "de"}
    with pytest.raises(ValueError, match=f"no mixture. Received: '{name}'"):
        synthetic.write_synthetic(None, settings, None, tmp_path)


def test_an_epoch_has_as_many_backward_translations_as_pairs(tmp_path):
    member = {"corpus": "reverse", "source_language": "en", "target_language": "de"}
    file = synthetic.write_mixture(tmp_path, member, (1, 1.0), [], [("a", "b")] * 2500)
    assert json.loads(file.read_text())["corpora"][1]["weight"] == 0.0004


def test_a_mixture_reads_all_but_the_training_split_of_a_member_without_weight(trained, tmp_path):
    run("--teacher=forth", "--model_dir=student/")
    file = tmp_path / "student_text" / "mixture.json"
    members = json.loads(file.read_text())["corpora"]
    assert [member["weight"] for member in members] == [0, 1]
    del members[0]["weight"]
    file.write_text(json.dumps({"corpora": members}))
    assert pairs_of(learned(trained).train)[:3] == PAIRS


@pytest.mark.slow
def test_a_student_equals_the_model_that_train_makes_of_the_mixture(warm, tmp_path):
    shell = Shell(tmp_path / "toy", warm)
    shell.folder.mkdir()
    toy = ["--flagfile=toy.flags", "--max_steps=20", "--validation_sentences=0", "--norelease"]
    small = [*toy, "--num_layers=2", "--num_decoder_layers=1"]
    mixture = ["--corpus=mixture", "--mixture=student_text/mixture.json"]
    weights = {}
    for name, *command in (
        ("teacher", "train", *toy),
        ("student", "distill", *small, "--teacher=teacher", "--teacher_beam_size=1"),
        ("alone", "train", *small, *mixture),
        ("reference", "train", *small),
    ):
        shell.run(*command, f"--model_dir={name}")
        with np.load(shell.folder / name / "averaged.npz") as archive:
            weights[name] = [archive[key] for key in sorted(archive.files)]
    for student, alone in zip(weights["student"], weights["alone"], strict=True):
        np.testing.assert_array_equal(student, alone)
    # The control: the references are another text.
    both = zip(weights["alone"], weights["reference"], strict=True)
    assert not all(np.array_equal(alone, reference) for alone, reference in both)
