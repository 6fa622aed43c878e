"""A run records the languages of its corpus; a run of an earlier version, which recorded those of
its flags, resumes.
"""

import pathlib
import shlex
import types

import pytest
from command_flags import values_of_task

from keras_transformer.runs.run import exported
from keras_transformer.tasks import corpus_settings
from keras_transformer.tasks.text_task import TRIAL, refuse_long_lines
from keras_transformer.tasks.translation.task import Translation
from pipelines import corpora
from pipelines.corpora import ParallelText
from pipelines.vocabularies import vocabulary

# Corpora: flags, and the languages of the text.
CORPORA = {
    "lines": ((), ("en", "en")),
    "spans": ((), ("en", "spans")),
    "treebank": ((), ("en", "trees")),
    "slots": (("--target_language=slots",), ("en", "slots")),
    "reverse": (("--target_language=x",), ("en", "x")),
}


@pytest.fixture
def settings_of(tmp_path):
    """A function of a key of `CORPORA` and flags: the settings of the corpus, and all values."""
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.en").write_text("one dog runs\n")
        (tmp_path / f"{split}.trees").write_text("(S (N dogs) (V run))\n")

    def settings(name, *arguments):
        folder = () if name in ("slots", "reverse") else (f"--data_dir={tmp_path}",)
        corpus = "intents" if name == "slots" else name
        flags = (f"--corpus={corpus}", *folder, *CORPORA[name][0], *arguments)
        values = values_of_task(Translation, *flags)
        return corpus_settings.corpus_settings(values), values

    return settings


@pytest.mark.parametrize("name", CORPORA)
def test_a_run_says_the_languages_of_its_corpus(settings_of, name):
    if name == "slots":
        pytest.importorskip("hassil", reason="install the extra [intents]")
        pytest.importorskip("home_assistant_intents", reason="install the extra [intents]")
    settings, values = settings_of(name)
    corpus = corpus_settings.load(settings, {})
    description = corpus_settings.described(settings, corpus)
    languages = (description["corpus"]["source_language"], description["corpus"]["target_language"])
    assert languages == (corpus.source_language, corpus.target_language) == CORPORA[name][1]
    assert corpora.load(**description["corpus"]) == corpus
    assert corpus_settings.folder_name(values) == "_".join([settings["name"], *languages])
    # An earlier version wrote the languages of the flags.
    assert corpus_settings.fixed({"corpus": settings}) == corpus_settings.fixed(description)


@pytest.mark.parametrize(
    ("name", "flag"),
    [
        ("lines", "--source_language=de"),
        ("slots", "--target_language=intent"),
        ("reverse", "--target_language=y"),
    ],
)
def test_control_another_text_is_another_run(settings_of, name, flag):
    before, now = (
        corpus_settings.fixed({"corpus": settings_of(name, *more)[0]}) for more in ((), (flag,))
    )
    assert before != now


# Lines that are too long for the search are refused before training.
LONG = "ab " * 1100


def corpus(valid, test):
    splits = {"valid": valid, "test": test}
    texts = {name: ParallelText(lines, lines) for name, lines in splits.items()}
    return types.SimpleNamespace(**texts)


def test_a_text_too_long_is_refused_with_its_split_and_line():
    pieces = vocabulary.learn(["a b"], 264)
    with pytest.raises(ValueError, match=r"^the test split, text 2 has .* Split it, or leave"):
        refuse_long_lines(corpus(["a"], ["a", LONG]), pieces, 1)
    with pytest.raises(ValueError, match=r"^the validation split, text 1 has"):
        refuse_long_lines(corpus([LONG], ["a"]), pieces, 1)
    # The control: what is not translated may be long.
    refuse_long_lines(corpus(["a", LONG], ["b"]), pieces, 1)


# The printed command that tries an export: a shell reads its text literally.
@pytest.mark.parametrize("text", ["a b", "It's 5 o'clock", '"$HOME" `x`', "", "\\n", "{x}"])
def test_a_shell_reads_the_text_as_it_is(text):
    printed = exported(TRIAL % "predict", [text], pathlib.Path("my models/m/1"))
    line = printed.partition("Try it:\n  ")[2]
    assert shlex.split(line) == [
        *("echo", text, "|"),
        *("python", "-m", "keras_transformer.predict", "--model=my models/m/1"),
    ]


def test_no_trial_is_printed_without_a_command_or_a_text():
    path = pathlib.Path("saved_models/m/1")
    assert exported("", [[0.5]], path) == exported(TRIAL, [], path) == f"exported to {path}."


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), None),
        (("--protect=tags",), "kept"),
        (("--protect_pattern=[0-9]+",), "kept"),
        (("--protect=tags", "--protect="), None),
        (("--protect=tags", "--markup=dropped"), None),
        (("--markup=alone",), "alone"),
        (("--protect=tags", "--corpus=reverse"), None),
    ],
)
def test_markup_is_kept_where_it_is_protected(arguments, expected):
    values = values_of_task(Translation, "--corpus=home_assistant", *arguments)
    assert corpus_settings.corpus_settings(values).get("markup") == expected
