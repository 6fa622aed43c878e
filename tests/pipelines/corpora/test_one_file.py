"""Pairs of one file: tables and translation memories."""

import collections
import gzip
from xml.sax.saxutils import escape

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from token_lists import pairs_of

from pipelines import corpora
from pipelines.corpora.parallel_text import split_of

PAIRS = [(f"source {number}", f"Ziel {number}") for number in range(300)]


def tmx(pairs, source="en", target="de"):
    units = "".join(
        f'<tu><tuv xml:lang="{source}"><seg>{escape(one)}</seg></tuv>'
        f'<tuv xml:lang="{target}"><seg>{escape(other)}</seg></tuv></tu>'
        for one, other in pairs
    )
    return (
        f'<?xml version="1.0"?><tmx version="1.4"><header srclang="en"/><body>{units}</body></tmx>'
    )


def tsv(pairs):
    return "".join(f"{one}\t{other}\n" for one, other in pairs)


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
    found = rows(written(PAIRS))
    expected = collections.defaultdict(list)
    for pair in PAIRS:
        expected[split_of(pair[0])].append(pair)
    assert found == expected


def test_files_that_are_named_have_their_own_pairs_which_are_not_trained_on(written, tmp_path):
    other = tmp_path / "other"
    own = [("one", "eins"), *PAIRS[:9]]
    other.write_text(KINDS[written.kind](own))
    found = rows(written(PAIRS, valid_file=other, test_file=other))
    assert found["valid"] == found["test"] == own
    assert not set(found["train"]) & set(own)


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


def test_columns_have_numbers_or_names(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text(
        "id\tde\ten\n" + "".join(f'7\t"{other}\t{one}\n' for one, other in PAIRS), encoding="utf-8"
    )
    named = corpora.load("tsv", data_file=path, source_column="en", target_column="de")
    # Quotes stand as they are.
    assert named.train.targets[0].startswith('"Ziel')
    numbered = corpora.load("tsv", data_file=path, source_column="3", target_column="2")
    assert len(numbered.train) in (len(named.train), len(named.train) + 1)
    with pytest.raises(ValueError, match=r"names of the first line .*id, de, en. Received: fr"):
        corpora.load("tsv", data_file=path, source_column="en", target_column="fr")
    with pytest.raises(ValueError, match="too few columns"):
        corpora.load("tsv", data_file=path, target_column="4")
    with pytest.raises(ValueError, match=r"`target_column` are both 2\. Name two"):
        corpora.load("tsv", data_file=path, source_column="2")


def test_regions_of_a_language_fall_back(tmp_path):
    path = tmp_path / "memory.tmx"
    path.write_text(tmx(PAIRS, "EN-us", "de_AT"), encoding="utf-8")
    for languages in (("en", "de"), ("en-GB", "de-AT"), ("en_US", "DE")):
        source, target = languages
        corpus = corpora.load("tmx", data_file=path, source_language=source, target_language=target)
        assert corpus.train.sources[0] == PAIRS[0][0]
    with pytest.raises(ValueError, match="300 without one of the languages"):
        corpora.load("tmx", data_file=path, target_language="fr")


def test_codes_within_a_segment_stay(tmp_path):
    path = tmp_path / "memory.tmx"
    body = tmx(PAIRS).replace(
        "source 7<", "a <bpt i='1'>&lt;b&gt;</bpt>b<ept i='1'>&lt;/b&gt;</ept><"
    )
    path.write_text(body, encoding="utf-8")
    corpus = corpora.load("tmx", data_file=path)
    assert "a <b>b</b>" in [*corpus.train.sources, *corpus.valid.sources, *corpus.test.sources]


@pytest.mark.parametrize("text", ["", "<tmx", "<tmx><body><tu></body></tmx>", "a\tb\n"])
def test_a_damaged_memory_is_refused(tmp_path, text):
    path = tmp_path / "memory.tmx"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"memory.tmx is no translation memory, or is damaged"):
        corpora.load("tmx", data_file=path)


def test_a_file_may_be_compressed_and_one_that_is_missing_is_told(tmp_path):
    path = tmp_path / "pairs.tsv.gz"
    with pytest.raises(FileNotFoundError):
        corpora.load("tsv", data_file=path)
    path.write_bytes(gzip.compress(tsv(PAIRS).encode()))
    assert len(corpora.load("tsv", data_file=path).train) > 200


TEXTS = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Cn")), max_size=20)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=20))
def test_each_usable_pair_comes_once(tmp_path, pairs):
    expected = {
        (one.strip(), other.strip()) for one, other in pairs if one.strip() and other.strip()
    } | set(PAIRS)
    for kind, text in KINDS.items():
        path = tmp_path / f"any.{kind}"
        path.write_text(text([*PAIRS, *pairs]), encoding="utf-8")
        found = [
            pair for split in rows(corpora.load(kind, data_file=path)).values() for pair in split
        ]
        assert len(found) == len(set(found))
        assert set(found) == expected
