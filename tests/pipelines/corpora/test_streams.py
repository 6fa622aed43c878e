"""Streams: the parts of a corpus give together what loading it gives, whatever their number; faults
are told as loading tells them.
"""

import gzip
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines import corpora
from pipelines.corpora import text_files
from pipelines.dropped import Dropped

LANGUAGES = {"source_language": "en", "target_language": "de"}


def write(folder, english, german):
    for prefix, sides in (
        ("train", (english, german)),
        ("valid", (["v"], ["V"])),
        ("test", (["t"], ["T"])),
    ):
        for language, lines in zip(("en", "de"), sides, strict=True):
            (folder / f"{prefix}.{language}.gz").write_bytes(
                gzip.compress("".join(f"{line}\n" for line in lines).encode())
            )
    return {**LANGUAGES, "data_dir": folder}


def read(name, parts, **keywords):
    """What each part gives, and what all of them leave out."""
    dropped = Dropped()
    streams = [
        list(corpora.stream(name, part=part, parts=parts, dropped=dropped, **keywords))
        for part in range(parts)
    ]
    return streams, dropped


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(*[st.sampled_from(["", "a", "b c", " ", "ü"])] * 2), min_size=1, max_size=12
    ),
    st.integers(1, 5),
)
def test_the_parts_of_text_files_give_each_pair_and_each_reason_once(
    tmp_path_factory, lines, parts
):
    lines.append(("last", "last"))
    keywords = write(tmp_path_factory.mktemp("text"), *zip(*lines, strict=True))
    loaded = corpora.load("text_files", **keywords)
    streams, dropped = read("text_files", parts, **keywords)
    pairs = list(zip(loaded.train.sources, loaded.train.targets, strict=True))
    assert sorted(itertools.chain(*streams)) == sorted(pairs)
    assert dict(dropped) == loaded.dropped
    assert streams[0] == [pair for pair in lines[::parts] if pair[0].strip() and pair[1].strip()]


@pytest.mark.parametrize("parts", [1, 3])
def test_a_corpus_that_is_loaded_whole_is_cut_too(parts):
    text = corpora.load("reverse", **LANGUAGES, seed=2).train
    streams, dropped = read("reverse", parts, **LANGUAGES, seed=2)
    assert sorted(itertools.chain(*streams)) == sorted(zip(text.sources, text.targets, strict=True))
    assert {len(stream) for stream in streams} <= {len(text) // parts, len(text) // parts + 1}
    assert not dropped


@pytest.mark.parametrize("name", ["text_files", "reverse"])
def test_what_is_held_out_is_what_loading_holds_out(name, tmp_path):
    keywords = write(tmp_path, ["a", ""], ["A", "B"]) if name == "text_files" else LANGUAGES
    held_out, loaded = corpora.held_out(name, **keywords), corpora.load(name, **keywords)
    assert (held_out.name, held_out.source_language, held_out.target_language) == (name, "en", "de")
    assert (held_out.valid, held_out.test) == (loaded.valid, loaded.test)
    assert len(held_out.train) == 0


def test_what_is_held_out_is_read_without_the_training_side(tmp_path):
    keywords = write(tmp_path, ["a"], ["A"])
    (tmp_path / "train.en.gz").write_bytes(b"no gzip")
    assert corpora.held_out("text_files", **keywords).valid.sources == ["v"]
    with pytest.raises(ValueError, match="must be a whole gzip file"):  # control
        corpora.load("text_files", **keywords)
    (tmp_path / "train.en.gz").unlink()
    with pytest.raises(FileNotFoundError, match=r"train\.en"):  # yet that it is missing is told
        corpora.held_out("text_files", **keywords)


@pytest.mark.parametrize("part", [0, 1, 2])
@pytest.mark.parametrize(("english", "german"), [(5, 3), (2, 9), (3, 0)])
def test_every_part_tells_unequal_line_counts(tmp_path, part, english, german):
    keywords = write(tmp_path, ["x"] * english, ["y"] * german)
    with pytest.raises(ValueError) as streamed:
        list(text_files.stream("en", "de", data_dir=tmp_path, part=part, parts=3))
    with pytest.raises(ValueError) as loaded:
        corpora.load("text_files", **keywords)
    assert str(streamed.value) == str(loaded.value)
    assert f"Received: {english} and {german}" in str(loaded.value) or "empty file" in str(
        loaded.value
    )


def test_bad_utf8_is_told_with_its_line_by_the_part_that_reads_it(tmp_path):
    write(tmp_path, ["a"] * 5, ["b"] * 5)
    (tmp_path / "train.de.gz").write_bytes(gzip.compress(b"b\nb\nb\nM\xfc\nb\n"))
    with pytest.raises(ValueError, match=r"train\.de\.gz, line 4: must be UTF-8"):
        list(text_files.stream("en", "de", data_dir=tmp_path, part=1, parts=2))
    assert (
        len(list(text_files.stream("en", "de", data_dir=tmp_path, part=0, parts=2))) == 3
    )  # control: it reads lines 1, 3, 5


def test_what_can_be_told_at_once_is(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"train\.en"):
        corpora.stream("text_files", **LANGUAGES, data_dir=tmp_path)
    with pytest.raises(ValueError, match="must be one of home_assistant"):
        corpora.stream("wmt", **LANGUAGES)
    with pytest.raises(ValueError, match="must be one of home_assistant"):
        corpora.held_out("wmt", **LANGUAGES)
