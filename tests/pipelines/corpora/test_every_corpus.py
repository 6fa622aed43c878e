"""Laws of all corpora: an option of another corpus is refused; dropped pairs are counted, or
refused by `strict`; parts give what loading gives; a mixture of one corpus equals that corpus.
"""

import dataclasses
import gzip
import itertools
import json
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from token_lists import complaint, pairs_of

from pipelines import corpora
from pipelines.corpora import CORPORA
from pipelines.corpora.options import PREFIXES
from pipelines.dropped import Dropped
from pipelines.options import settings as options_of

SPLITS = ("train", "valid", "test")


@dataclasses.dataclass(frozen=True)
class Row:
    """A corpus of files.

    Attributes:
        names: file names of a split, where {} stands for the split.
        good: lines of these files, all of which are kept.
        bad: a line of the first file that is dropped; the other files have a good line there.
        reason: why it is dropped.
        empty: the message about an empty file.
    """

    names: tuple[str, ...]
    good: tuple[str, ...]
    bad: str
    reason: str
    empty: str


TEXT = ("one dog", "two cats")
TREES = ("(S (N Dogs) (V run))", "(S (N Cats) (V sit))")
ROWS = {
    "text_files": Row(("{}.en", "{}.de"), TEXT, "", "empty", "empty file"),
    "lines": Row(("{}.en",), TEXT, "", "empty", "empty file"),
    "spans": Row(("{}.en",), TEXT, "alone", "without a span", "empty file"),
    "treebank": Row(("{}.trees",), TREES, "(())", "empty bracket", "holds no tree with words"),
}


@pytest.fixture(params=ROWS)
def name(request):
    return request.param


def write(folder, name, lines=None, split="train", zipped=False):
    """Write good files of a corpus; `lines` replace those of the first file of `split`."""
    row = ROWS[name]
    for prefix in SPLITS:
        text = lines if lines is not None and prefix == split else row.good
        for number, file in enumerate(row.names):
            content = list(text) if number == 0 else ["good words"] * len(text)
            data = "".join(f"{line}\n" for line in content).encode("utf-8", "surrogateescape")
            path = folder / file.format(prefix)
            if zipped:
                path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(data))
            else:
                path.write_bytes(data)
    return {"data_dir": folder}


def test_gzipped_files_are_read_like_plain_files(name, tmp_path):
    plain = corpora.load(name, **write(tmp_path, name))
    (tmp_path / "zipped").mkdir()
    assert corpora.load(name, **write(tmp_path / "zipped", name, zipped=True)) == plain
    assert [len(split) for split in (plain.train, plain.valid, plain.test)] == [2, 2, 2]
    assert plain.name == name
    assert plain.dropped == {}
    assert (plain.source_language, plain.target_language) == CORPORA[name].languages("en", "de")


def test_dropped_lines_are_counted_with_their_place_and_refused_by_strict(name, tmp_path):
    row = ROWS[name]
    arguments = write(tmp_path, name, [row.good[0], row.bad, row.good[1], row.bad], "valid")
    corpus = corpora.load(name, **arguments)
    place = f"{tmp_path}/{row.names[0].format('valid')}, line 2"
    assert corpus.dropped == {row.reason: 2}
    assert corpus.dropped.firsts == {row.reason: place}
    assert len(corpus.valid) == 2
    last = f"{tmp_path}/{row.names[-1].format('valid')}, line 3"
    assert corpus.valid.place(1, "") == last
    with pytest.raises(ValueError, match=r"line 2: "):
        corpora.load(name, **arguments, strict=True)
    # A control: good lines are not refused.
    assert corpora.load(name, **write(tmp_path, name), strict=True).dropped == {}
    write(tmp_path, name, [row.good[0], row.bad])
    with pytest.raises(ValueError, match=r"train\.\w+, line 2: "):
        list(corpora.stream(name, **arguments, strict=True))


def test_a_missing_folder_or_file_is_refused(name, tmp_path):
    with pytest.raises(ValueError, match=rf"^Corpus {name} needs `data_dir`.*Pass --data_dir=FOL"):
        corpora.load(name)
    for nowhere in (tmp_path / "nowhere", "~nobody_here/x"):
        with pytest.raises(FileNotFoundError, match="must be an existing folder"):
            corpora.load(name, data_dir=nowhere)
    path = tmp_path / ROWS[name].names[0].format("train")
    path.symlink_to("gone")
    link = re.escape(path.name)
    expected = (
        rf"{link} nor {link}\.gz exists. .* holds: {link} \(a link to nothing\)\..*train_prefix"
    )
    with pytest.raises(FileNotFoundError, match=expected):
        corpora.load(name, data_dir=tmp_path)
    path.unlink()
    # A missing file is refused before any other is read.
    write(tmp_path, name, ["\udcff"])
    with pytest.raises(FileNotFoundError, match=r"dev.* The folder holds: test"):
        corpora.load(name, data_dir=tmp_path, prefixes=("train", "dev", "test"))


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("lines", [[], ["", " "], ["\r".join(TEXT)]])
def test_a_file_without_text_or_line_feeds_is_refused(name, tmp_path, lines, zipped):
    expected = ROWS[name].empty if not lines else "no usable pair|holds no|with line feeds"
    with pytest.raises(ValueError, match=expected):
        corpora.load(name, **write(tmp_path, name, lines, "test", zipped))


@pytest.mark.parametrize("line", ["\udcff", "\0".join("two cats")])
def test_invalid_utf8_is_refused_with_its_line(name, tmp_path, line):
    lines = [ROWS[name].good[0], line]
    with pytest.raises(ValueError, match=r"test\.\w+, line 2: must be UTF-8"):
        corpora.load(name, **write(tmp_path, name, lines, "test"))


def test_a_line_that_is_too_long_is_dropped(name, tmp_path):
    if name == "treebank":
        pytest.skip("test_treebank.py tests words that make a tree too long")
    lines = ["two words", f"a {'b' * 100_000}", "two more"]
    assert corpora.load(name, **write(tmp_path, name, lines)).dropped == {"huge line": 1}


def test_prefixes_must_be_three_different_names(name, tmp_path):
    arguments = write(tmp_path, name)
    for prefixes in (["train", "valid"], ["train", "", "test"], "train,valid,test"):
        with pytest.raises(ValueError, match="`prefixes` must name three splits"):
            corpora.load(name, **arguments, prefixes=prefixes)
    for prefixes in (["test", "test", None], ["test", "valid", "test"]):
        with pytest.raises(ValueError, match=r"`train_prefix` must be another.*'test' twice"):
            corpora.load(name, **arguments, prefixes=prefixes)
    corpus = corpora.load(name, **arguments, prefixes=["test", "valid", None])
    assert [len(split) for split in (corpus.train, corpus.valid, corpus.test)] == [2, 2, 0]


def test_a_mixture_of_one_corpus_is_that_corpus_with_its_tag(name, tmp_path):
    write(tmp_path, name)
    languages = {"source_language": "en", "target_language": "de"}
    member = {"corpus": name, "data_dir": ".", "tag": "<a>", **languages}
    (tmp_path / "mixture.json").write_text(json.dumps({"corpora": [member]}))
    mixed = corpora.load("mixture", mixture=tmp_path / "mixture.json")
    alone = corpora.load(name, data_dir=tmp_path)
    for split in SPLITS:
        expected = [(f"<a> {source}", target) for source, target in pairs_of(getattr(alone, split))]
        assert pairs_of(getattr(mixed, split)) == expected
    assert mixed.tags == ("<a>", *alone.tags)


def streamed(name, parts, **arguments):
    """The pairs of each part, and the counts of what all parts drop."""
    dropped = Dropped()
    streams = [
        list(corpora.stream(name, part=part, parts=parts, dropped=dropped, **arguments))
        for part in range(parts)
    ]
    return streams, dropped


@settings(max_examples=20)
@given(
    st.lists(
        st.tuples(*[st.sampled_from(["", "a", "b c", " ", "ü"])] * 2), min_size=1, max_size=12
    ),
    st.integers(1, 5),
)
def test_parts_of_text_files_give_each_pair_and_each_reason_once(tmp_path_factory, lines, parts):
    lines.append(("last", "last"))
    folder = tmp_path_factory.mktemp("text")
    arguments = write(folder, "text_files", [source for source, _ in lines], zipped=True)
    targets = "".join(f"{target}\n" for _, target in lines)
    (folder / "train.de.gz").write_bytes(gzip.compress(targets.encode()))
    loaded = corpora.load("text_files", **arguments)
    streams, dropped = streamed("text_files", parts, **arguments)
    assert sorted(itertools.chain(*streams)) == sorted(pairs_of(loaded.train))
    assert dict(dropped) == loaded.dropped
    assert streams[0] == [pair for pair in lines[::parts] if pair[0].strip() and pair[1].strip()]


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("name", ["reverse", "lines", "treebank"])
def test_a_corpus_that_is_loaded_whole_is_split_into_parts_too(name, parts, tmp_path):
    arguments = {"seed": 2} if name == "reverse" else write(tmp_path, name)
    corpus = corpora.load(name, **arguments)
    streams, dropped = streamed(name, parts, **arguments)
    assert sorted(itertools.chain(*streams)) == sorted(pairs_of(corpus.train))
    assert max(map(len, streams)) - min(map(len, streams)) <= 1
    assert not dropped
    held_out = corpora.held_out(name, **arguments)
    assert held_out == dataclasses.replace(corpus, train=held_out.train)
    assert len(held_out.train) == 0


def test_held_out_splits_are_read_without_the_training_files(tmp_path):
    arguments = write(tmp_path, "text_files")
    (tmp_path / "train.en").write_bytes(b"\xff\n")
    held_out = corpora.held_out("text_files", **arguments)
    assert pairs_of(held_out.valid)[0] == ("one dog", "good words")
    with pytest.raises(ValueError, match="must be UTF-8"):  # control
        corpora.load("text_files", **arguments)


@pytest.mark.parametrize("part", [0, 1, 2])
@pytest.mark.parametrize(("english", "german"), [(5, 3), (2, 9), (3, 0), (0, 3), (0, 0)])
def test_every_part_refuses_unequal_line_counts(tmp_path, part, english, german):
    arguments = write(tmp_path, "text_files", ["x"] * english)
    (tmp_path / "train.de").write_text("y\n" * german)
    message = complaint(ValueError, corpora.load, "text_files", **arguments)
    stream = corpora.stream("text_files", **arguments, part=part, parts=3)
    assert complaint(ValueError, list, stream) == message
    empty = "train.en" if not english else "train.de"
    expected = f"Received: {english} and {german}"
    if not english * german:
        expected = f"{tmp_path / empty} must hold one sentence a line. Received: an empty file."
    assert expected in message


def test_invalid_utf8_is_refused_with_its_line_by_the_part_that_reads_it(tmp_path):
    arguments = write(tmp_path, "text_files", ["a"] * 5)
    (tmp_path / "train.de").write_bytes(b"b\nb\nb\nM\xfc\nb\n")
    with pytest.raises(ValueError, match=r"train\.de, line 4: must be UTF-8"):
        list(corpora.stream("text_files", **arguments, part=1, parts=2))
    # A control: the other part reads lines 1, 3, 5.
    assert len(list(corpora.stream("text_files", **arguments, part=0, parts=2))) == 3


@pytest.mark.parametrize("part", [-1, 2])
def test_a_part_that_does_not_exist_is_refused(tmp_path, part):
    arguments = write(tmp_path, "text_files", ["a"] * 5)
    with pytest.raises(ValueError, match=f"from 0 to `parts` - 1. Received: part={part}, parts=2"):
        list(corpora.stream("text_files", **arguments, part=part, parts=2))


@pytest.mark.parametrize("call", [corpora.load, corpora.stream, corpora.held_out])
def test_wrong_options_are_refused_at_the_call(call, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"train\.en"):
        call("text_files", data_dir=tmp_path)
    with pytest.raises(ValueError, match=r"must be one of home_assistant, intents.*Received: 'wm"):
        call("wmt", source_language="en", target_language="de")
    for splits in (["train", "test"], ["a", "b", "c", "d"], ["a", "", "c"]):
        with pytest.raises(ValueError, match=r"^`splits` must name three splits: "):
            call("tfds", dataset="x", splits=splits)


FOREIGN = [
    (corpus, option)
    for corpus in CORPORA
    for option in sorted({name for kind in CORPORA.values() for name in options_of(kind)})
    if option not in (*PREFIXES, *options_of(CORPORA[corpus]))
]


@pytest.mark.parametrize("call", [corpora.load, corpora.stream, corpora.held_out])
def test_an_option_of_another_corpus_is_never_silently_ignored(call):
    for corpus, option in FOREIGN:
        if option in corpora.PASSED_OVER:
            continue
        readers = sorted(name for name in CORPORA if option in options_of(CORPORA[name]))
        with pytest.raises(ValueError) as raised:
            call(corpus, **{option: True if option == "strict" else "here"})
        assert str(raised.value).startswith(
            f"Only corpus {' or '.join(readers)} reads `{option}`. Received: corpus={corpus}, "
        )
    assert ("reverse", "data_dir") in FOREIGN
    assert len(FOREIGN) > 30


NEEDED = {"records": "data_dir", "tfds": "dataset", "mixture": "mixture", "tsv": "data_file"}


@pytest.mark.parametrize(("name", "needed"), NEEDED.items())
def test_a_corpus_without_the_option_it_needs_is_refused(name, needed):
    with pytest.raises(ValueError, match=rf"^Corpus {name} needs `{needed}`.*Pass --{needed}="):
        corpora.load(name, source_language="en", target_language="de")


def test_corpora_import_neither_tensorflow_nor_the_model():
    heavy = {"tensorflow", "keras", "keras_transformer"}
    code = f"import sys, pipelines.corpora; print({heavy} & {{*sys.modules}})"
    printed = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert printed.strip() == "set()"
