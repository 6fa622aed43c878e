"""Own text: what is written is read back, and every fault is told with its file and, where it has
one, its line.
"""

import gzip
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pipelines import corpora
from pipelines.corpora import line_files, parallel_text

MULTI30K = Path(__file__).parents[4] / "shared" / "data" / "multi30k"
LINE = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=20)
SENTENCE = LINE.filter(lambda line: line.strip() and not line.startswith("\ufeff"))


def write(folder, **contents):
    """Writes a small good corpus, with some files replaced: train_en=b"..." is train.en,
    train_en_gz is train.en.gz.
    """
    for prefix in ("train", "valid", "test"):
        for language in ("en", "de"):
            (folder / f"{prefix}.{language}").write_bytes(f"{prefix} {language}\nsecond\n".encode())
    for name, content in contents.items():
        path = folder / name.replace("_", ".")
        if path.suffix == ".gz":
            path.with_suffix("").unlink()
        path.write_bytes(content)
    return folder


def load(folder, **options):
    return corpora.load("text_files", data_dir=folder, **options)


def complaint(error_type, folder, **options):
    with pytest.raises(error_type) as caught:
        load(folder, **options)
    assert type(caught.value) is error_type
    assert "\n" not in str(caught.value)
    return str(caught.value)


@settings(max_examples=100, deadline=None)
@given(lines=st.lists(LINE), mark=st.booleans(), last_newline=st.booleans(), packed=st.booleans())
def test_lines_round_trip(tmp_path_factory, lines, mark, last_newline, packed):
    assume(last_newline or not lines or lines[-1])  # "a\n" + "" is one line, not two
    assume(mark or not lines or not lines[0].startswith("\ufeff"))
    if mark and not lines:
        lines = [""]
        last_newline = True
    content = (
        ("\ufeff" if mark else "") + "\n".join(lines) + ("\n" if lines and last_newline else "")
    )
    path = tmp_path_factory.mktemp("lines") / ("text.gz" if packed else "text")
    path.write_bytes(gzip.compress(content.encode()) if packed else content.encode())
    assert line_files.read_lines(path) == [line.strip() for line in lines]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(SENTENCE, SENTENCE), min_size=1, max_size=10))
def test_pairs_round_trip_in_either_direction(tmp_path_factory, pairs):
    folder = write(tmp_path_factory.mktemp("pairs"))
    for side, language in enumerate(("en", "de")):
        (folder / f"train.{language}").write_bytes(
            "".join(pair[side] + "\n" for pair in pairs).encode()
        )
    forward, backward = (
        load(folder),
        corpora.load("text_files", source_language="de", target_language="en", data_dir=folder),
    )
    assert list(zip(forward.train.sources, forward.train.targets, strict=True)) == [
        (en.strip(), de.strip()) for en, de in pairs
    ]
    assert (backward.train.sources, backward.train.targets) == (
        forward.train.targets,
        forward.train.sources,
    )
    assert forward.dropped == {}


def test_only_newlines_end_lines(tmp_path):
    path = tmp_path / "text"
    text = "one\u2028still one\ntwo\x85still two\nthree\x0cstill three\rand on\r\n"
    path.write_bytes(text.encode())
    assert line_files.read_lines(path) == [
        "one\u2028still one",
        "two\x85still two",
        "three\x0cstill three\rand on",
    ]
    assert len(text.splitlines()) == 7  # control: str.splitlines would shift the pairs


def test_empty_sides_and_huge_lines_are_dropped_and_counted(tmp_path):
    limit = parallel_text.LONGEST_LINE
    english = ["kept", "", "  ", "c", "x" * limit, "x" * (limit + 1), "e"]
    german = ["behalten", "a", "", " \r", "y", "z", "y" * (limit + 1)]
    folder = write(
        tmp_path,
        train_en="\n".join(english).encode(),
        train_de="\n".join(german).encode(),
        test_en=b"\nb",
        test_de=b"A\nB",
    )
    corpus = load(folder)
    assert corpus.train.sources == ["kept", "x" * limit]
    assert corpus.train.targets == ["behalten", "y"]
    assert (corpus.test.sources, corpus.test.targets) == (["b"], ["B"])
    assert corpus.dropped == {"empty": 4, "huge line": 2}


def test_unequal_line_counts_name_both_files_and_counts(tmp_path):
    message = complaint(ValueError, write(tmp_path, train_en=b"a\nb\nc\n"))
    assert (
        f"{tmp_path / 'train.en'} and {tmp_path / 'train.de'} must have as many lines. Received: "
        "3 and 2" in message
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [("test_de", b""), ("test_de_gz", gzip.compress(b"", mtime=0)), ("test_de_gz", b"")],
)
def test_empty_file(tmp_path, name, content):
    message = complaint(ValueError, write(tmp_path, **{name: content}))
    assert str(tmp_path / name.replace("_", ".")) in message
    assert "empty file" in message


def test_no_pair_left(tmp_path):
    assert "no usable pair: all 2 " in complaint(ValueError, write(tmp_path, valid_de=b"\n \n"))


def test_plain_and_packed_twins_are_ambiguous(tmp_path):
    write(tmp_path)
    (tmp_path / "train.en.gz").write_bytes(gzip.compress(b"a\nb\n"))
    message = complaint(ValueError, tmp_path)
    assert f"Both {tmp_path / 'train.en'} and {tmp_path / 'train.en.gz'} exist" in message


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_damaged_gzip_never_passes_unnoticed(tmp_path_factory, data):
    lines = ["".join(map(chr, range(33, 127))), "last"]
    whole = gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)
    cut = data.draw(st.integers(1, len(whole) - 1))
    path = tmp_path_factory.mktemp("gz") / "train.en.gz"
    path.write_bytes(whole[:cut])
    with pytest.raises(ValueError, match=r"train\.en\.gz must be a whole gzip file") as caught:
        line_files.read_lines(path)
    assert "\n" not in str(caught.value)
    flipped = bytearray(whole)
    flipped[-data.draw(st.integers(1, 8))] ^= data.draw(
        st.integers(1, 255)
    )  # the check sum and the length
    path.write_bytes(flipped)
    with pytest.raises(ValueError, match=r"train\.en\.gz must be a whole gzip file"):
        line_files.read_lines(path)
    path.write_bytes(whole)  # control
    assert line_files.read_lines(path) == lines


def test_two_languages_must_differ(tmp_path):
    with pytest.raises(ValueError, match=r"must differ\. Received: 'en' twice"):
        corpora.load("text_files", target_language="en", data_dir=tmp_path)


def test_multi30k_as_it_lies():
    if not MULTI30K.is_dir():
        pytest.skip(f"{MULTI30K} is not on this machine")
    corpus = load(MULTI30K, prefixes=("train", "val", "test_2016_flickr"))
    assert (len(corpus.train), len(corpus.valid), len(corpus.test)) == (29000, 1014, 1000)
    assert corpus.dropped == {}
    assert corpus.train.sources[0] == "Two young, White males are outside near many bushes."
    assert (
        corpus.train.targets[0]
        == "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche."
    )
