"""Text of one language, a line each."""

import gzip

import pytest

from pipelines import corpora


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.en").write_text("A cat.\n\n A dog. \n")
    (tmp_path / "valid.en").write_text("A bird.\n")
    with gzip.open(tmp_path / "test.en.gz", "wt", encoding="utf-8") as file:
        file.write("Ein Vögelchen.\n")
    return tmp_path


def load(folder, **settings):
    given = {"source_language": "en", "target_language": "de", "data_dir": folder}
    return corpora.load("lines", **given | settings)


def test_lines_stand_for_themselves_and_empty_ones_are_dropped(folder):
    corpus = load(folder)
    assert corpus.train.sources == corpus.train.targets == ["A cat.", "A dog."]
    assert corpus.valid.sources == ["A bird."]
    assert corpus.test.sources == ["Ein Vögelchen."]
    assert corpus.dropped == {"empty": 1}
    assert (corpus.source_language, corpus.target_language) == ("en", "en")


def test_what_is_missing_or_empty_is_told(folder):
    with pytest.raises(ValueError, match=r"^Corpus lines needs `data_dir`.* Pass --data_dir="):
        load(None)
    with pytest.raises(FileNotFoundError, match=r"train\.fr nor train\.fr\.gz exists"):
        load(folder, source_language="fr")
    (folder / "valid.en").write_text("\n \n")
    with pytest.raises(ValueError, match=r"valid\.en holds no text\. Fill it, or name another"):
        load(folder)
    (folder / "valid.en").write_bytes(b"\xff\n")
    with pytest.raises(ValueError, match=r"valid\.en, line 1: must be UTF-8"):
        load(folder)
