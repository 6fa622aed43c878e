"""The registry: a name leads to its corpus, and options reach it."""

import subprocess
import sys

import pytest

from pipelines import corpora


def test_reverse_gets_languages_and_seed():
    corpus = corpora.load("reverse", source_language="x", target_language="y", seed=3)
    assert corpus == corpora.reverse.load("x", "y", seed=3)
    assert corpus != corpora.reverse.load("x", "y")
    assert (corpus.name, corpus.source_language, corpus.target_language) == ("reverse", "x", "y")


def test_text_files_gets_folder_and_prefixes(tmp_path):
    for prefix in ("a", "b", "c"):
        for language in ("en", "de"):
            (tmp_path / f"{prefix}.{language}").write_text(f"{prefix} {language}\n")
    corpus = corpora.load(
        "text_files",
        source_language="de",
        target_language="en",
        data_dir=tmp_path,
        prefixes=["a", "b", "c"],
    )
    assert corpus.name == "text_files"
    assert (corpus.valid.sources, corpus.valid.targets) == (["b de"], ["b en"])


def test_home_assistant_gets_cache_folder(tmp_path):
    folder = tmp_path / corpora.home_assistant.WHEEL
    folder.mkdir()
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        corpora.load(
            "home_assistant", source_language="en", target_language="de", cache_dir=tmp_path
        )


def test_unknown_corpus_lists_the_known_ones():
    with pytest.raises(
        ValueError,
        match=r"home_assistant, intents, lines, .*, text_files, tfds, treebank\. Received: 'wmt'",
    ):
        corpora.load("wmt", source_language="en", target_language="de")


@pytest.mark.parametrize("call", [corpora.load, corpora.stream, corpora.held_out])
@pytest.mark.parametrize(
    ("argument", "readers", "others"),
    [
        (
            "data_dir",
            "text_files or lines or spans or treebank or records or tfds",
            ["home_assistant", "mixture", "reverse"],
        ),
        ("dataset", "tfds", ["home_assistant", "mixture", "records", "reverse", "text_files"]),
        ("mixture", "mixture", ["home_assistant", "records", "reverse", "text_files", "tfds"]),
    ],
)
def test_own_text_is_never_silently_passed_over(call, argument, readers, others):
    for name in others:
        with pytest.raises(
            ValueError,
            match=rf"^Only corpus {readers} reads `{argument}`\. Received: corpus={name}, "
            rf"{argument}=here\. ",
        ):
            call(name, source_language="en", target_language="de", **{argument: "here"})


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("text_files", "data_dir"),
        ("records", "data_dir"),
        ("tfds", "dataset"),
        ("mixture", "mixture"),
    ],
)
def test_a_corpus_without_what_it_needs_says_so(name, needed):
    with pytest.raises(ValueError, match=rf"^Corpus {name} needs `{needed}`"):
        corpora.load(name, source_language="en", target_language="de")


def test_imports_neither_tensorflow_nor_the_model():
    code = (
        "import sys, pipelines.corpora; print([m for m in ('tensorflow', 'keras', "
        "'keras_transformer') if m in sys.modules])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )


@pytest.mark.parametrize("splits", [["train", "test"], ["a", "b", "c", "d"]])
@pytest.mark.parametrize("read", [corpora.load, corpora.stream, corpora.held_out])
def test_another_number_of_splits_than_three_is_told_however_the_text_is_read(read, splits):
    with pytest.raises(
        ValueError, match=r"^`splits` must name three splits: .*(train,test|a,b,c,d)"
    ):
        read("tfds", source_language="en", target_language="de", dataset="x", splits=splits)
