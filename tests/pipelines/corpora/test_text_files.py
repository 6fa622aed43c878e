"""Text of users: what is written is read back, and every error names its file and, if it has one,
its line.
"""

import bz2
import collections
import gzip
import io
import itertools
import json
import lzma
import os
import zipfile
from xml.sax.saxutils import escape

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from token_lists import complaint, pairs_of

from pipelines import corpora, line_files
from pipelines.corpora import Reverse, reverse
from pipelines.corpora.parallel_text import ParallelText, split_of

LINE = st.text(st.characters(codec="utf-8", exclude_characters="\n\0"), max_size=20)
SENTENCE = LINE.filter(lambda line: line.strip() and not line.startswith("\ufeff"))


def write(folder):
    """Write a small good corpus."""
    for prefix, language in itertools.product(("train", "valid", "test"), ("en", "de")):
        (folder / f"{prefix}.{language}").write_text(f"{prefix} {language}\nsecond\n")
    return folder


def load(folder, **options):
    return corpora.load("text_files", data_dir=folder, **options)


@settings(max_examples=100)
@example(["one\u2028still one", "two\x85", "three\x0cstill three\rand on\r"], False, True, False)
@given(lines=st.lists(LINE), mark=st.booleans(), last_newline=st.booleans(), packed=st.booleans())
def test_lines_round_trip(tmp_path_factory, lines, mark, last_newline, packed):
    assume(last_newline or not lines or lines[-1])  # "a\n" + "" is one line, not two
    assume(mark or not lines or not lines[0].startswith("\ufeff"))
    if mark and not lines:
        lines = [""]
        last_newline = True
    end = "\n" if lines and last_newline else ""
    content = ("\ufeff" if mark else "") + "\n".join(lines) + end
    path = tmp_path_factory.mktemp("lines") / ("text.gz" if packed else "text")
    path.write_bytes(gzip.compress(content.encode()) if packed else content.encode())
    assert line_files.read_lines(path) == [line.strip() for line in lines]


@settings(max_examples=30)
@given(st.lists(st.tuples(SENTENCE, SENTENCE), min_size=1, max_size=10))
def test_pairs_round_trip_in_either_direction(tmp_path_factory, pairs):
    assume(len(pairs) > 1 or "\r" not in "".join(pairs[0]))  # the line ends of old Macs
    folder = write(tmp_path_factory.mktemp("pairs"))
    for side, language in enumerate(("en", "de")):
        text = "".join(pair[side] + "\n" for pair in pairs)
        (folder / f"train.{language}").write_bytes(text.encode())
    forward = load(folder)
    backward = load(folder, source_language="de", target_language="en")
    assert pairs_of(forward.train) == [(en.strip(), de.strip()) for en, de in pairs]
    assert pairs_of(backward.train) == [pair[::-1] for pair in pairs_of(forward.train)]
    assert forward.dropped == {}


def test_ambiguous_files_and_one_language_are_refused(tmp_path):
    message = complaint(ValueError, load, write(tmp_path), target_language="en")
    assert "must differ. Received: 'en' twice" in message
    (tmp_path / "train.en.gz").write_bytes(gzip.compress(b"a\nb\n"))
    message = complaint(ValueError, load, tmp_path)
    assert f"Both {tmp_path / 'train.en'} and {tmp_path / 'train.en.gz'} exist" in message


@settings(max_examples=60)
@given(st.data())
def test_damaged_gzip_never_passes_unnoticed(tmp_path_factory, data):
    lines = ["".join(map(chr, range(33, 127))), "last"]
    whole = gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)
    cut = data.draw(st.integers(1, len(whole) - 1))
    path = tmp_path_factory.mktemp("gz") / "train.en.gz"
    path.write_bytes(whole[:cut])
    message = complaint(ValueError, line_files.read_lines, path)
    assert "train.en.gz must be a whole gzip file" in message
    flipped = bytearray(whole)
    # The check sum and the length.
    flipped[-data.draw(st.integers(1, 8))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(flipped)
    with pytest.raises(ValueError, match=r"train\.en\.gz must be a whole gzip file"):
        line_files.read_lines(path)
    path.write_bytes(whole)  # control
    assert line_files.read_lines(path) == lines


def zipped(content):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("train.en", content)
    return archive.getvalue()


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zipped])
def test_a_packed_file_is_refused_at_its_first_line(pack, tmp_path):
    path = tmp_path / "train.en"
    path.write_bytes(pack(b"a line\n" * 99))
    message = complaint(ValueError, line_files.read_lines, path)
    assert message.startswith(f"{path} must hold lines of text. Received: a packed file. Unpack")
    # The control: lines that begin alike.
    path.write_text("BZh9 is a call sign\nPK\n")
    assert line_files.read_lines(path) == ["BZh9 is a call sign", "PK"]


# ParallelText has one target for each source.
@given(st.lists(st.text(), max_size=5), st.lists(st.text(), max_size=5))
def test_sources_and_targets_of_different_lengths_are_refused(sources, targets):
    if len(sources) == len(targets):
        assert len(ParallelText(sources, targets)) == len(sources)
    else:
        with pytest.raises(ValueError, match=f"{len(sources)} sources and {len(targets)} targets"):
            ParallelText(sources, targets)


def test_pairs_of_a_mixture_know_the_lines_of_its_members(tmp_path):
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.en").write_text("a\n\nb\nc\n")
        (tmp_path / f"{split}.de").write_text("A\nB\nC\nD\n")
    languages = {"source_language": "en", "target_language": "de"}
    toy = {"corpus": "reverse", "seed": 1, **languages}
    text = {"corpus": "text_files", "data_dir": ".", **languages}
    mixture = tmp_path / "mixture.json"
    # With the byte order mark of Windows' programs.
    mixture.write_text("\ufeff" + json.dumps({"corpora": [toy, text]}))
    settings = dict.fromkeys(languages)
    corpus = corpora.load("mixture", **settings, mixture=mixture)
    assert corpus.test.place(len(corpus.test) - 1, "") == f"{tmp_path}/test.de, line 4"
    assert corpus.test.place(2, "") == f"{mixture}, member 1, pair 3"
    assert corpus.dropped.firsts["empty"] == f"{tmp_path}/train.en, line 2"
    with pytest.raises(ValueError, match=r"mixture\.json, member 2: .*train\.en, line 2: empty"):
        corpora.load("mixture", **settings, mixture=mixture, strict=True)
    # A text of unknown origin has numbers for places.
    assert ParallelText(["a", "b"], ["A", "B"]).place(1, "the test side") == "the test side, text 2"


# The toy corpus.
def test_the_toy_corpus_is_reversed_disjoint_and_trains_every_length_and_word():
    corpora_by_seed = [Reverse(seed=seed).load() for seed in (0, 1, 2, 1)]
    # The seed decides everything.
    assert corpora_by_seed[1] == corpora_by_seed[3] != corpora_by_seed[2]
    for corpus in corpora_by_seed[:3]:
        splits = (corpus.train, corpus.valid, corpus.test)
        assert [len(split) for split in splits] == [4000, 200, 200]
        sources = [source for split in splits for source in split.sources]
        assert len(set(sources)) == len(sources)
        for source, target in itertools.chain(*map(pairs_of, splits)):
            assert target.split() == source.split()[::-1]
        assert {len(source.split()) for source in corpus.train.sources} == set(range(3, 13))
        words = {word for source in corpus.train.sources for word in source.split()}
        assert words == set(reverse.WORDS)


# Pairs of one file: tables and translation memories.
PAIRS = [(f"source {number}", f"Ziel {number}") for number in range(300)]


def tmx(pairs, source="en", target="de"):
    units = "".join(
        f'<tu><tuv xml:lang="{source}"><seg>{escape(source_text)}</seg></tuv>'
        f'<tuv xml:lang="{target}"><seg>{escape(target_text)}</seg></tuv></tu>'
        for source_text, target_text in pairs
    )
    head = '<?xml version="1.0"?><tmx version="1.4"><header srclang="en"/>'
    return f"{head}<body>{units}</body></tmx>"


def tsv(pairs):
    return "".join(f"{source}\t{target}\n" for source, target in pairs)


KINDS = {"tsv": tsv, "tmx": tmx}


@pytest.fixture(params=KINDS)
def written(request, tmp_path):
    """A function of pairs and options: the corpus of a file."""

    def load(pairs, name="pairs", **options):
        path = tmp_path / f"{name}.{request.param}"
        path.write_text(KINDS[request.param](pairs), encoding="utf-8")
        return corpora.load(request.param, data_file=path, **options)

    load.kind = request.param
    return load


def rows(corpus):
    return {split: pairs_of(getattr(corpus, split)) for split in ("train", "valid", "test")}


def test_a_pairs_split_is_decided_by_its_source(written):
    splits = rows(written(PAIRS))
    expected = collections.defaultdict(list)
    for pair in PAIRS:
        expected[split_of(pair[0])].append(pair)
    assert splits == expected


def test_pairs_of_a_held_out_file_are_not_trained_on(written, tmp_path):
    held_out = tmp_path / "held_out"
    own = [("one", "eins"), *PAIRS[:9]]
    held_out.write_text(KINDS[written.kind](own))
    splits = rows(written(PAIRS, valid_file=held_out, test_file=held_out))
    assert splits["valid"] == splits["test"] == own
    assert not set(splits["train"]) & set(own)
    whole = tmp_path / f"pairs.{written.kind}"
    (tmp_path / "link").symlink_to(whole)
    same = (whole, tmp_path / "link", os.path.relpath(whole))
    for name, path in itertools.product(("valid_file", "test_file"), same):
        with pytest.raises(ValueError, match=f"^`{name}` must be another file than `data_file`"):
            written(PAIRS, **{name: path})


def test_faulty_pairs_are_counted_with_the_first_place(written):
    faulty = [*PAIRS, ("", "leer"), PAIRS[0], PAIRS[0], ("x" * 100_001, "lang")]
    corpus = written(faulty)
    assert dict(corpus.dropped) == {"empty": 1, "duplicate": 2, "huge line": 1}
    unit = "line" if written.kind == "tsv" else "unit"
    assert corpus.dropped.firsts["empty"].endswith(f"{unit} 301")
    with pytest.raises(ValueError, match=f"{unit} 301: empty"):
        written(faulty, strict=True)
    number = PAIRS.index(rows(corpus)["valid"][0]) + 1
    assert corpus.valid.place(0, "valid").endswith(f"{unit} {number}")
    with pytest.raises(ValueError, match=r"no usable pair is left for the .* split of"):
        written(PAIRS[:2])


def test_columns_are_chosen_by_number_or_name(tmp_path):
    path = tmp_path / "pairs.tsv"
    table = "".join(f'7\t"{target}\t{source}\n' for source, target in PAIRS)
    path.write_text(f"id\tde\ten\n{table}", encoding="utf-8")
    named = corpora.load("tsv", data_file=path, source_column="en", target_column="de")
    # Quotes are text, not delimiters.
    assert named.train.targets[0].startswith('"Ziel')
    numbered = corpora.load("tsv", data_file=path, source_column="3", target_column="2")
    assert len(numbered.train) in (len(named.train), len(named.train) + 1)
    with pytest.raises(ValueError, match=r" both .* or both .*: id, de, en\. Received: en and 2\."):
        corpora.load("tsv", data_file=path, source_column="en")
    path.write_text("\t".join(map(str, range(100))), encoding="utf-8")
    with pytest.raises(ValueError, match=r"once: 0, .*, 18, 19 and 80 more\. Received: en and 2\."):
        corpora.load("tsv", data_file=path, source_column="en")
    path.write_text(table, encoding="utf-8")
    with pytest.raises(ValueError, match="too few columns between tabs"):
        corpora.load("tsv", data_file=path, target_column="4")
    for column in ("2", "02"):
        with pytest.raises(ValueError, match=rf"`target_column` are both {column}\. Name two"):
            corpora.load("tsv", data_file=path, source_column=column)


def test_regions_of_a_language_fall_back(tmp_path):
    path = tmp_path / "memory.tmx"
    path.write_text(tmx(PAIRS, "EN-us", "de_AT"), encoding="utf-8")
    for languages in (("en", "de"), ("en-GB", "de-AT"), ("en_US", "DE")):
        source, target = languages
        corpus = corpora.load("tmx", data_file=path, source_language=source, target_language=target)
        assert corpus.train.sources[0] == PAIRS[0][0]
    # No segment is its own translation.
    for target in ("fr", "en-GB"):
        with pytest.raises(ValueError, match="300 without one of the languages"):
            corpora.load("tmx", data_file=path, target_language=target)


def test_codes_within_a_segment_stay_and_line_breaks_are_spaces(tmp_path):
    path = tmp_path / "memory.tmx"
    bold = "a\n   <bpt i='1'>&lt;b&gt;</bpt>b<ept i='1'>&lt;/b&gt;</ept><"
    body = tmx(PAIRS).replace("source 7<", bold)
    path.write_text(body, encoding="utf-8")
    corpus = corpora.load("tmx", data_file=path)
    assert "a <b>b</b>" in [*corpus.train.sources, *corpus.valid.sources, *corpus.test.sources]


ENCODED = [f"<?xml version='1.0' encoding='{name}'?><tmx/>" for name in ("shift_jis", "none")]


@pytest.mark.parametrize("text", ["", "<tmx", "<tmx><body><tu></body></tmx>", "a\tb\n", *ENCODED])
def test_a_damaged_memory_is_refused(tmp_path, text):
    path = tmp_path / "memory.tmx"
    path.write_text(text, encoding="utf-8")
    cut = tmp_path / "cut.tmx.gz"
    cut.write_bytes(gzip.compress(tmx(PAIRS).encode())[:-9])
    for memory in (path, cut):
        with pytest.raises(ValueError, match=f"^{memory} is no translation memory, or is damaged"):
            corpora.load("tmx", data_file=memory)


def test_a_table_may_be_compressed_and_a_missing_one_is_refused(tmp_path):
    path = tmp_path / "pairs.tsv.gz"
    with pytest.raises(FileNotFoundError):
        corpora.load("tsv", data_file=path)
    path.write_bytes(gzip.compress(tsv(PAIRS).encode()))
    assert len(corpora.load("tsv", data_file=path).train) > 200
    # With the line ends of old Macs.
    path.write_bytes(gzip.compress(tsv(PAIRS).replace("\n", "\r").encode()))
    for column in ("1", "en"):
        message = complaint(ValueError, corpora.load, "tsv", data_file=path, source_column=column)
        assert f"{path} must end its lines" in message


TEXTS = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Cn")), max_size=20)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=20))
def test_each_usable_pair_comes_once(tmp_path, pairs):
    stripped = [(source.strip(), target.strip()) for source, target in pairs]
    expected = {*PAIRS, *(pair for pair in stripped if all(pair))}
    for kind, text in KINDS.items():
        path = tmp_path / f"any.{kind}"
        path.write_text(text([*PAIRS, *pairs]), encoding="utf-8")
        splits = rows(corpora.load(kind, data_file=path)).values()
        kept_pairs = [pair for split in splits for pair in split]
        assert len(kept_pairs) == len(set(kept_pairs))
        assert set(kept_pairs) == expected
