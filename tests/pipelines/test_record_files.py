"""Records: pairs that are written are read back, whatever the blocks; and damaged, foreign or
missing files are refused.
"""

import errno
import gzip
import itertools
import json
import os
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
from command_flags import values_of_task
from hypothesis import given, settings
from hypothesis import strategies as st
from token_lists import complaint, listed, packed

from keras_transformer.tasks.translation.task import Translation
from pipelines import corpora
from pipelines.batches.batching import training_batches
from pipelines.batches.texts import TokenizedPairs
from pipelines.corpora import check_languages
from pipelines.corpora import record_files as records
from pipelines.corpora.parallel_text import Corpus, ParallelText
from pipelines.corpora.record_files import Records, deserialize, read_shard, serialize, write_shard
from pipelines.prepare.filtering import Filters, usable_pairs
from pipelines.prepare.preparation import manifest_of
from pipelines.prepare.sharding import Shards, tokenized
from pipelines.special_ids import EOS
from pipelines.vocabularies.token_ids import empty_array
from pipelines.vocabularies.vocabulary import learn
from pipelines.whole_files import write_json

SHARDS = 3
PAIRS = [(f"the house number {n}", f"das Haus Nummer {n} " + "und " * (n % 7)) for n in range(200)]
VALID, TEST = ParallelText(["a b", "c"], ["A B", "C"]), ParallelText(["d"], ["D"])
AGAIN = "Run python -m keras_transformer.prepare again: it makes only what is missing."
IDS = st.lists(st.lists(st.integers(0, 2**16 - 1), min_size=1, max_size=5), max_size=8)


def pairs_of(sentences, dtype=np.uint16):
    """Pairs of each sentence and its reverse, repeated."""
    reversed_twice = packed([ids[::-1] * 2 for ids in sentences], dtype)
    return TokenizedPairs(packed(sentences, dtype), reversed_twice)


@pytest.fixture(scope="module")
def vocabulary():
    return learn([side.strip() for pair in PAIRS for side in pair], 300)


@pytest.fixture
def folder(tmp_path, vocabulary):
    """A prepared corpus, without Beam."""
    shards = Shards(tmp_path, SHARDS, vocabulary, deduplicate=True)
    usable = usable_pairs(PAIRS, Filters(), {})
    blocks = list(tokenized(usable, shards.models, SHARDS, range(SHARDS)))
    for shard in range(SHARDS):
        shards.write(shard, [pairs for number, pairs in blocks if number == shard])
    vocabulary.save(tmp_path / "vocabulary.model")
    for split, text in (("valid", VALID), ("test", TEST)):
        paths = corpora.records.text_paths(tmp_path, split)
        for path, lines in zip(paths, (text.sources, text.targets), strict=True):
            path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    splits = (ParallelText([], []), VALID, TEST)
    held_out = Corpus("reverse", "en", "de", *splits, {"empty": 2}, tags=("<2de>",))
    counts = [shards.counts(shard) for shard in range(SHARDS)]
    manifest = manifest_of({"name": "reverse"}, held_out, vocabulary, counts, {"length ratio": 5})
    write_json(tmp_path / "manifest.json", manifest)
    return tmp_path


def edit(folder, **entries):
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))


@settings(max_examples=40)
@given(IDS, IDS, st.sampled_from([np.uint16, np.int32]))
def test_blocks_round_trip_one_behind_the_other(first, second, dtype):
    parts = (pairs_of(sentences, dtype) for sentences in (first, second))
    blocks = [serialize(pairs.sources, pairs.targets) for pairs in parts]
    back = deserialize(blocks, dtype)
    assert listed(back.sources) == first + second
    assert listed(back.targets) == [ids[::-1] * 2 for ids in first + second]
    assert back.sources.flat.dtype == back.targets.flat.dtype == dtype


@pytest.mark.parametrize(("pairs", "block"), [(0, 3), (7, 1), (7, 3), (7, 7), (7, 8)])
def test_how_many_pairs_a_block_holds_changes_nothing(tmp_path, monkeypatch, pairs, block):
    sentences = [[*range(number, 3 * number + 1)] for number in range(pairs)]
    monkeypatch.setattr(records, "BLOCK", block)
    write_shard(tmp_path / "x.tfrecord.gz", pairs_of(sentences))
    [path] = tmp_path.iterdir()
    raw = list(tf.data.TFRecordDataset(str(path), compression_type="GZIP").as_numpy_iterator())
    assert len(raw) == -(-pairs // block)
    assert listed(deserialize(raw, np.uint16).sources) == sentences


@pytest.mark.parametrize(("dtype", "width"), [(np.uint16, 2), (np.int32, 4)])
def test_the_bytes_are_those_that_the_format_says(dtype, width):
    pairs = pairs_of([[258, EOS], [7, 8, EOS]], dtype)
    features = tf.train.Example.FromString(serialize(pairs.sources, pairs.targets)).features.feature
    values = {name: feature.bytes_list.value[0] for name, feature in features.items()}
    assert set(values) == {"source_ids", "target_ids", "source_lengths", "target_lengths"}
    assert values["source_ids"] == np.array([258, EOS, 7, 8, EOS], f"<i{width}").tobytes()
    assert values["target_lengths"] == np.array([4, 6], "<i4").tobytes()


@pytest.mark.parametrize(
    "damage", [lambda record: b"", lambda record: b"\x0a\x04junk", lambda record: record[:-3]]
)
def test_bytes_that_are_no_block_are_refused(damage):
    record = serialize(*[packed([[1, EOS]])] * 2)
    message = complaint(ValueError, deserialize, [damage(record)], np.uint16)
    assert "no block of pairs" in message
    assert listed(deserialize([record], np.uint16).sources) == [[1, EOS]]  # control


def test_a_failing_write_leaves_nothing(tmp_path):
    pairs = pairs_of([[1], [2]])
    with pytest.raises(AttributeError):
        write_shard(tmp_path / "x", TokenizedPairs(pairs.sources, None))
    assert list(tmp_path.iterdir()) == []


def assert_same_ids(actual, expected):
    for side in ("sources", "targets"):
        for part in ("flat", "starts"):
            arrays = [getattr(getattr(pairs, side), part) for pairs in (actual, expected)]
            np.testing.assert_array_equal(*arrays, strict=True)


def test_the_number_of_processors_changes_nothing(folder, monkeypatch):
    several = Records(folder).pairs()
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    assert_same_ids(Records(folder).pairs(), several)


@pytest.mark.parametrize("max_length", [1, 12, 1000])
def test_long_pairs_are_dropped_and_counted_as_of_any_other_text(folder, max_length):
    prepared = Records(folder)
    limited, expected = prepared.pairs(max_length), prepared.pairs().up_to(max_length)
    assert listed(limited.targets) == listed(expected.targets)
    assert limited.too_long == expected.too_long == len(prepared) - len(limited)


def test_the_manifest_counts_what_there_is(folder):
    prepared = Records(folder)
    pairs, manifest = prepared.pairs(), prepared.manifest
    for side, ids in (("source", pairs.sources), ("target", pairs.targets)):
        assert manifest[f"{side}_tokens"] == len(ids.flat)
        assert ids.flat.dtype == np.uint16
        assert manifest[f"{side}_lengths"] == np.bincount(ids.lengths).tolist()
    assert sum(shard["pairs"] for shard in manifest["shards"]) == manifest["pairs"] == len(pairs)
    assert manifest["dropped"] == {"empty": 2, "length ratio": 5}


def test_the_corpus_has_languages_text_and_tags_from_the_folder(folder):
    corpus = corpora.load("records", source_language=None, target_language="de", data_dir=folder)
    expected = ("records", "en", "de", ("<2de>",))
    assert (corpus.name, corpus.source_language, corpus.target_language, corpus.tags) == expected
    assert (corpus.valid, corpus.test) == (VALID, TEST)
    assert isinstance(corpus.train, Records)
    assert len(corpus.train) == len(PAIRS)
    with pytest.raises(ValueError, match="holds token ids, no text"):
        corpora.stream("records", source_language="x", target_language="y", data_dir=folder)
    error = r"^`source_language` must be that of the records, en\. Received: de\. "
    with pytest.raises(ValueError, match=rf"{error}Pass --source_language=en, or leave it out\.$"):
        check_languages(corpus, {"source_language": "de", "target_language": None})


def test_a_shard_without_pairs_is_whole(tmp_path, vocabulary):
    shards = Shards(tmp_path, 1, vocabulary, deduplicate=True)
    shards.write(0, [])
    counts = shards.counts(0)
    assert (counts["pairs"], counts["source_lengths"]) == (0, [])


def with_a_flipped_bit(content):
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


SHARD, MANIFEST = "train-00001-of-00003.tfrecord.gz", "manifest.json"
# A file of the folder, what becomes of its bytes, or None if it is lost, and what is said.
DAMAGES = {
    "no shard": (SHARD, None, f"{SHARD} is missing"),
    "no vocabulary": ("vocabulary.model", None, "vocabulary.model is missing"),
    "no text": ("test.target.gz", None, "test.target.gz"),
    "no manifest": (MANIFEST, None, "it has no manifest.json"),
    "a flipped bit": (SHARD, with_a_flipped_bit, f"{SHARD} is damaged: "),
    "a cut shard": (SHARD, lambda whole: whole[:-1], f"{SHARD} must have "),
    "no JSON": (MANIFEST, lambda _: b"", "is damaged: it is not JSON"),
    "a list": (MANIFEST, lambda _: b"[]", "is damaged: it must hold a JSON object. Received: []"),
    "no shards": (MANIFEST, lambda _: b'{"format": 1}', "is damaged: it lacks dropped, pairs, "),
    "no bytes": (MANIFEST, lambda whole: whole.replace(b"byte", b"bit"), "`bytes` - at `$.shards["),
    "no name": (MANIFEST, lambda whole: whole.replace(b'"name', b'"nom'), "`$.preparation`"),
    "a tag of 1": (MANIFEST, lambda whole: whole.replace(b"[", b"[1, ", 1), "at `$.tags[0]`"),
}


def test_text_of_unequal_lengths_is_refused_by_its_files(folder):
    (folder / "valid.source.gz").write_bytes(gzip.compress(b"one line\n"))
    message = complaint(ValueError, corpora.load, "records", data_dir=folder)
    assert f"{folder}/valid.source.gz and {folder}/valid.target.gz must have as many" in message


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_folder_is_refused_with_the_remedy(folder, name):
    file, damage, message = DAMAGES[name]
    content = (folder / file).read_bytes()
    (folder / file).unlink()
    if damage:
        (folder / file).write_bytes(damage(content))
    error_type = ValueError if damage else FileNotFoundError
    received = complaint(error_type, lambda: corpora.load("records", data_dir=folder).train.pairs())
    assert message in received
    assert not damage or str(folder / file) in received
    assert AGAIN in received


def test_another_format_is_refused(folder):
    edit(folder, format=2)
    assert "must be of format 1. Received: 2." in complaint(ValueError, Records, folder)


def test_the_wrong_vocabulary_is_refused(folder, vocabulary):
    wrong = learn(["another text of other words"] * 3, 280)
    wrong.save(folder / "vocabulary.model")
    expected = f"fingerprint {vocabulary.fingerprint}. Received: {wrong.fingerprint}."
    assert expected in complaint(ValueError, Records, folder)


def test_a_truncated_shard_of_the_right_size_is_refused_when_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "x.tfrecord.gz"
    monkeypatch.setattr(records, "BLOCK", 2)
    write_shard(path, pairs_of([[n, n + 1, EOS] for n in range(50)]))
    whole = path.read_bytes()
    assert len(read_shard(path, np.uint16, 50)) == 50  # control
    for size in np.linspace(0, len(whole) - 20, 15).astype(int):
        path.write_bytes(whole[:size])
        message = complaint(ValueError, read_shard, path, np.uint16, 50)
        assert f"{path} is damaged: " in message
        assert AGAIN in message


def test_ids_that_are_mapped_are_those_in_memory(folder, tmp_path):
    """With and without a greatest length, when files are written and when they are there; and so
    are batches of them.
    """
    for max_length in (None, 12):
        held = Records(folder).pairs(max_length)
        for _ in range(2):
            mapped = Records(folder, tmp_path / "maps").pairs(max_length)
            assert isinstance(mapped.sources.flat, np.memmap)
            assert mapped.too_long == held.too_long
            assert_same_ids(mapped, held)
    orders = (training_batches(pairs.examples(), 50, seed=3) for pairs in (mapped, held))
    streams = [tf.nest.flatten([*itertools.islice(order.arrays(7), 9)]) for order in orders]
    for arrays in zip(*streams, strict=True):
        np.testing.assert_array_equal(*arrays)
    assert len(list((tmp_path / "maps").iterdir())) == 2


@pytest.mark.parametrize("is_mapped", [True, False])
def test_a_run_maps_the_ids_if_its_flag_says_so(folder, tmp_path, is_mapped):
    arguments = ["--corpus=records", f"--data_dir={folder}", f"--map_dir={tmp_path / 'maps'}"]
    task = Translation(values_of_task(Translation, *arguments[: 2 + is_mapped]))
    assert isinstance(task.corpus.train.pairs().sources.starts, np.memmap) == is_mapped


def test_another_corpus_of_the_same_sizes_has_a_map_of_its_own(folder, tmp_path):
    mapped = Records(folder, tmp_path / "maps").pairs()
    edit(folder, preparation={"name": "reverse", "text": "0f"})
    assert_same_ids(Records(folder, tmp_path / "maps").pairs(), mapped)
    assert len(list((tmp_path / "maps").iterdir())) == 2


def test_a_mapped_file_that_was_cut_is_refused(folder, tmp_path):
    maps = tmp_path / "maps"
    Records(folder, maps).pairs()
    [name] = maps.iterdir()
    (name / "target.ids").write_bytes(b"12")
    with pytest.raises(ValueError, match=r"target\.ids is damaged.*Delete its folder"):
        Records(folder, maps).pairs()


def test_a_full_disk_is_refused_before_mapped_memory_is_written(tmp_path, monkeypatch):
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr("os.posix_fallocate", mock.Mock(side_effect=full))
    with pytest.raises(OSError, match=f"No space left on device: '{tmp_path}'"):
        empty_array(8, np.int64, tmp_path)
