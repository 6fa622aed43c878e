"""TensorFlow Datasets without a network: sets that TFDS' own code prepares here, and folders of
text.
"""

import collections
import itertools
import re
import shutil
import socket
import time
import types

import pytest
import tensorflow_datasets
import token_lists
from token_lists import pairs_of
from written import prepare

from pipelines import corpora
from pipelines.corpora import tfds
from pipelines.corpora.parallel_text import LONGEST_LINE
from pipelines.dropped import Dropped

# TFDS calls what protobuf 6 deprecates whenever it reads the metadata of a set.
pytestmark = pytest.mark.filterwarnings(r"ignore:label\(\) is deprecated:DeprecationWarning")

SIZES = {"train": 300, "validation": 20, "test": 30}
WMT = "wmt14_translate/de-en"
FOLDER = "translate_folder"
SETS = {
    WMT: ("de", "en"),
    "wmt14_translate/fr-en": ("fr", "en"),
    "wmt_t2t_translate/de-en": ("de", "en"),
    "ted_hrlr_translate/pt_to_en": ("pt", "en"),
}


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*arguments, **_):
        raise AssertionError(f"a test reached for the network: {arguments}")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


def sentence(language, split, number):
    return f"{language} {split} {number} ä"


def written(split, source="de", target="en"):
    """The pairs of a split, the same in all sets."""
    numbers = range(SIZES[split])
    return [(sentence(source, split, n), sentence(target, split, n)) for n in numbers]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    tensorflow_datasets.disable_progress_bar()
    folder = tmp_path_factory.mktemp("tensorflow_datasets")
    for dataset, languages in SETS.items():
        splits = {
            split: [
                {language: sentence(language, split, number) for language in languages}
                for number in range(size)
            ]
            for split, size in SIZES.items()
        }
        prepare(dataset, folder, splits)
    return folder


def write_folder(folder, languages=("de", "en"), **contents):
    """Writes a TranslateFolder, whose training files begin with a byte order mark; `contents`
    replaces files: train_en=b"..." is en.train.txt.
    """
    for split, language in itertools.product(SIZES, languages):
        lines = [sentence(language, split, number) + "\n" for number in range(SIZES[split])]
        encoding = "utf-8-sig" if split == "train" else "utf-8"
        (folder / f"{language}.{split}.txt").write_text("".join(lines), encoding)
    for name, content in contents.items():
        split, language = name.split("_")
        (folder / f"{language}.{split}.txt").write_bytes(content)
    return folder


def load(source="de", target="en", **options):
    return corpora.load("tfds", source_language=source, target_language=target, **options)


def stream(source="de", target="en", split="train", **options):
    """One of several parts of a split."""
    options |= {"splits": (split, "validation", "test"), "source_language": source}
    return corpora.stream("tfds", target_language=target, **options)


def complaint(error_type, call=load, *, source="de", target="en", **options):
    return token_lists.complaint(error_type, call, source, target, **options)


@pytest.mark.parametrize("dataset", [*SETS, FOLDER])
def test_a_set_is_read_in_any_direction(prepared, tmp_path, dataset):
    """A folder of text in its order too."""
    languages = SETS.get(dataset, ("de", "en", "fr"))
    folder = write_folder(tmp_path, languages) if dataset == FOLDER else prepared
    in_order = list if dataset == FOLDER else sorted
    for source, target in itertools.permutations(languages, 2):
        corpus = load(source, target, dataset=dataset, data_dir=folder)
        assert (corpus.name, corpus.dropped) == ("tfds", {})
        assert (corpus.source_language, corpus.target_language) == (source, target)
        for split, text in zip(SIZES, (corpus.train, corpus.valid, corpus.test), strict=True):
            assert in_order(pairs_of(text)) == in_order(written(split, source, target))


@pytest.fixture(scope="module", params=[WMT, FOLDER])
def either(request, prepared, tmp_path_factory):
    """Options of a set, or of a folder of text."""
    if request.param == FOLDER:
        prepared = write_folder(tmp_path_factory.mktemp("folder"))
    return {"dataset": request.param, "data_dir": prepared}


def test_splits_are_sliced_and_added(either):
    options = {**either, "splits": ("train[:10%]+validation", "train[290:]", "test[-5:]")}
    corpus = load("de", "en", **options)
    train, valid, test = (set(pairs_of(text)) for text in (corpus.train, corpus.valid, corpus.test))
    assert (len(train), len(valid), len(test)) == (50, 10, 5)
    assert len(train & set(written("train"))) == 30
    assert train > set(written("validation"))
    assert valid < set(written("train"))
    assert test < set(written("test"))
    assert not train & valid
    held_out = corpora.held_out("tfds", source_language="de", target_language="en", **options)
    assert (len(held_out.train), held_out.valid, held_out.test) == (0, corpus.valid, corpus.test)


@pytest.mark.parametrize(
    ("split", "parts"),
    [("train", 6), ("train[10%:30%]", 1), ("test+validation", 3), ("validation[:2]", 5)],
)
def test_the_parts_of_a_split_are_even_and_give_each_pair_once(either, split, parts):
    options = {**either, "split": split}
    whole = list(stream("de", "en", **options))
    cut = [list(stream("de", "en", **options, part=part, parts=parts)) for part in range(parts)]
    assert collections.Counter(itertools.chain(*cut)) == collections.Counter(whole)
    assert len(set(whole)) == len(whole)
    summands = split.count("+") + 1
    assert max(map(len, cut)) - min(map(len, cut)) <= summands


def test_a_stream_reads_only_what_is_consumed(prepared, tmp_path, monkeypatch):
    folder = shutil.copytree(prepared, tmp_path / "copy")
    for shard in folder.glob("wmt14_translate/de-en/*/*train*"):
        shard.write_bytes(shard.read_bytes()[:-20])
    monkeypatch.setattr(tfds, "EXAMPLES_A_READ", 8)
    rows = stream("de", "en", dataset=WMT, data_dir=folder)
    assert set(itertools.islice(rows, 40)) < set(written("train"))
    # A control: the rest is damaged.
    with pytest.raises(OSError, match="A set of TFDS is damaged"):
        list(rows)


def test_unusable_pairs_are_dropped_and_counted_and_line_breaks_become_spaces(tmp_path):
    limit = LONGEST_LINE
    german = ["zwei\nZeilen\r\nund\u2028drei", "", " \n", "d", "x" * limit, "x" * (limit + 1), "g"]
    english = ["two\x85lines", "b", "c", "\t", "e", "f", "y" * (limit + 1)]
    examples = [{"de": de, "en": en} for de, en in zip(german, english, strict=True)]
    splits = {"train": examples, "validation": examples[:1], "test": examples[:2]}
    prepare(WMT, tmp_path, splits, shards=1)
    corpus = load("de", "en", dataset=WMT, data_dir=tmp_path)
    expected = [("x" * limit, "e"), ("zwei Zeilen und drei", "two lines")]
    assert sorted(pairs_of(corpus.train)) == expected
    assert corpus.dropped == {"empty": 4, "huge line": 2}
    dropped = Dropped()
    options = {"dataset": WMT, "data_dir": tmp_path, "dropped": dropped}
    assert len(list(stream(**options))) == 2
    assert dropped == {"empty": 3, "huge line": 2}


def test_without_a_network_it_gives_up_after_half_a_minute(tmp_path, monkeypatch):
    def unknown(*arguments, **_):
        raise socket.gaierror(-2, "Name or service not known")

    waits = []
    clock = types.SimpleNamespace(sleep=waits.append, time=time.time)
    monkeypatch.setattr("urllib3.util.retry.time", clock)
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(OSError, match="TFDS could not download or prepare it: ConnectionError"):
        tfds.builder_of(WMT, str(tmp_path), "en", "de")
    assert 0 < sum(waits) < 40


def test_a_language_that_the_set_lacks_is_refused_before_anything_is_downloaded(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(tensorflow_datasets.core.DatasetBuilder, "download_and_prepare", None)
    options = {"dataset": WMT, "data_dir": tmp_path}
    message = f"`source_language` must be a language of {WMT}. Received: 'fr'. It has: de, en."
    assert message in complaint(ValueError, source="fr", **options)
    assert "`target_language` must be" in complaint(ValueError, target="fr", **options)
    for dataset, columns in (("ted_multi_translate", "talk_name"), ("mnist", "none")):
        message = complaint(ValueError, dataset=dataset, data_dir=tmp_path)
        assert f"It has: {columns}." in message


def test_an_unknown_split_is_refused_with_a_list_of_the_known_ones(either):
    for split in ("dev", "train[:10%]+dev", "train[", "train[40:30]", "train[:1000]", "all[:1%]"):
        for message in (
            complaint(ValueError, splits=("train", split, "test"), **either),
            complaint(ValueError, stream, split=split, **either),
        ):
            assert f"Received: {split!r} (" in message
            assert sorted(message.partition("It has: ")[2].rstrip(".").split(", ")) == sorted(SIZES)
    assert len(list(stream("de", "en", split="all", **either))) == sum(SIZES.values())  # control


def test_a_split_without_a_usable_pair_is_refused(tmp_path):
    folder = write_folder(tmp_path, test_de=b"\n\n", test_en=b"a\nb\n")
    options = {"dataset": FOLDER, "data_dir": folder}
    message = "Split '{}' of translate_folder has no usable pair: "
    assert message.format("test") in complaint(ValueError, **options)
    with pytest.raises(ValueError, match=re.escape(message.format("train[:0]"))):
        next(stream("de", "en", split="train[:0]", **options))
    for part in (0, 1):  # a part may be empty
        assert list(stream("de", "en", split="test", part=part, parts=2, **options)) == []


@pytest.mark.parametrize(
    "error",
    [
        OSError("Max retries exceeded with url: /a.tgz\n(Caused by NameResolutionError)"),
        tensorflow_datasets.download.DownloadError("Failed to get url http://x. HTTP code: 404."),
        AssertionError("For czeng_10, you must manually download the following file(s)"),
        RuntimeError("bad archive"),
    ],
)
def test_a_failed_preparation_is_reported_with_the_set_and_its_folder(tmp_path, monkeypatch, error):
    def fail(_):
        raise error

    monkeypatch.setattr(tensorflow_datasets.core.DatasetBuilder, "download_and_prepare", fail)
    for call in (load, stream):
        message = complaint(OSError, call, dataset=WMT, data_dir=tmp_path)
        reason = f"{WMT} is not prepared in {tmp_path}, and TFDS could not download or prepare it: "
        assert message.startswith(reason)
        assert type(error).__name__ in message
        assert message.endswith("pass its folder with --data_dir.")


def test_a_damaged_set_is_refused(prepared, tmp_path):
    folder = shutil.copytree(prepared, tmp_path / "copy")
    shard = next(folder.glob("wmt14_translate/de-en/*/*train*00001-of*"))
    shard.write_bytes(shard.read_bytes()[:-20])
    options = {"dataset": WMT, "data_dir": folder}
    assert "A set of TFDS is damaged: " in complaint(OSError, **options)
    shard.unlink()
    message = complaint(OSError, **options)
    assert str(shard) in message
    assert "{{" not in message


@pytest.mark.parametrize("dataset", ["wmt", "wmt14_translate/xx-en", f"{WMT}:0.0.1", "wmt 14"])
def test_an_unknown_set_is_refused_by_name(tmp_path, dataset):
    message = complaint(ValueError, dataset=dataset, data_dir=tmp_path)
    expected = f"`dataset` must name a set of TFDS, such as {WMT}. Received: {dataset!r} ("
    assert expected in message
    assert len(message) < 600


def test_wrong_arguments_are_refused(tmp_path):
    folder = write_folder(tmp_path)
    options = {"dataset": FOLDER, "data_dir": folder}
    assert "must differ. Received: 'de' twice" in complaint(ValueError, target="de", **options)
    assert "needs `data_dir`" in complaint(ValueError, dataset=FOLDER)
    message = complaint(FileNotFoundError, dataset=FOLDER, data_dir=tmp_path / "no")
    assert f"Received: {tmp_path / 'no'}" in message
    # The folder holds a file that is not of the set.
    (folder / "README").write_text("notes")
    (folder / "old.train.txt").mkdir()
    assert "Received: README, old.train.txt. Move" in complaint(ValueError, **options)


@pytest.mark.parametrize("content", [b"a\nb\n", b"\xff\n" * SIZES["test"]])
def test_a_folder_whose_files_do_not_fit_is_refused(tmp_path, content):
    folder = write_folder(tmp_path, test_de=content)
    message = complaint(ValueError, dataset=FOLDER, data_dir=folder)
    assert f"{folder} cannot be read as a TranslateFolder: " in message


@pytest.mark.parametrize("separator", ["\u2028", "\x85", "\x0c", "\r"])
def test_separators_at_which_tfds_would_misalign_pairs_are_refused(tmp_path, separator):
    lines = [sentence("de", "test", number) for number in range(SIZES["test"])]
    early, late = (
        "".join(f"{line}{separator * (number == place)}x\n" for number, line in enumerate(lines))
        for place in (3, 9)
    )
    folder = write_folder(tmp_path, test_de=early.encode(), test_en=late.encode())
    # A control: TFDS itself finds no fault.
    builder = tfds.package().TranslateFolder(root_dir=str(folder))
    assert builder.info.splits["test"].num_examples == SIZES["test"] + 1
    message = complaint(ValueError, dataset=FOLDER, data_dir=folder)
    assert f"30 lines, but TranslateFolder reads {SIZES['test'] + 1}" in message
    write_folder(folder, test_de="\r\n".join([*lines, ""]).encode())
    assert len(load(dataset=FOLDER, data_dir=folder).test) == SIZES["test"]


def test_a_split_that_lacks_one_of_the_languages_is_refused(tmp_path):
    folder = write_folder(tmp_path, test_fr=(tmp_path.name + "\n").encode() * SIZES["test"])
    for call in (load, stream):
        message = complaint(ValueError, call, target="fr", dataset=FOLDER, data_dir=folder)
        assert "Split 'train' of translate_folder has no fr. It has: de, en." in message
    rows = stream("de", "fr", dataset=FOLDER, data_dir=folder, split="test")
    assert len(list(rows)) == SIZES["test"]  # control
