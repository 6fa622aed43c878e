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
    corpus = corpora.load("text_files", source_language="de", target_language="en", data_dir=tmp_path, prefixes=["a", "b", "c"])
    assert corpus.name == "text_files"
    assert (corpus.valid.sources, corpus.valid.targets) == (["b de"], ["b en"])


def test_home_assistant_gets_cache_folder(tmp_path):
    folder = tmp_path / corpora.home_assistant.WHEEL
    folder.mkdir()
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        corpora.load("home_assistant", source_language="en", target_language="de", cache_dir=tmp_path)


def test_unknown_corpus_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"home_assistant, reverse, text_files\. Received: 'wmt'"):
        corpora.load("wmt", source_language="en", target_language="de")


@pytest.mark.parametrize("name", ["home_assistant", "reverse"])
def test_own_text_is_never_silently_passed_over(name, tmp_path):
    with pytest.raises(ValueError, match="Only corpus text_files reads `data_dir`"):
        corpora.load(name, source_language="en", target_language="de", data_dir=tmp_path)


def test_imports_neither_tensorflow_nor_the_model():
    code = "import sys, pipelines.corpora; print([m for m in ('tensorflow', 'keras', 'keras_transformer') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
