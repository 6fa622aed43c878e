"""A preparation writes every pair once, as the vocabulary tokenizes it, and the same records
however it is divided or interrupted.
"""

import argparse
import collections
import json
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest
import tensorflow as tf
from command_flags import flags_of
from hypothesis import example, given, settings
from hypothesis import strategies as st
from token_lists import complaint, listed, pairs_of

from keras_transformer import prepare
from keras_transformer.flagfiles import Argument
from keras_transformer.flags import RESUMES
from keras_transformer.flags.recipes import recipe_of_records
from pipelines import corpora, vocabularies
from pipelines.corpora.record_files import Records
from pipelines.prepare import beam_runner
from pipelines.prepare.filtering import Filters, digest, sample, usable_pairs
from pipelines.prepare.options import Preparation
from pipelines.vocabularies.other_order import in_order
from pipelines.vocabularies.vocabulary import Vocabulary, learn
from pipelines.vocabularies.word_pieces import SPECIAL, WordPieces

for package in ("apache_beam", "babel", "regex"):
    pytest.importorskip(package)


class FlagValues(argparse.Namespace):
    def flag_values_dict(self):
        return vars(self)


DEFAULTS = flags_of("prepare").flag_values_dict() | {
    "corpus": "reverse",
    "vocabulary_size": 300,
    "shards": 4,
    "parts": 2,
}
ENGLISH = [f"the house number {n} is big" for n in range(300)]
GERMAN = [f"das Haus Nummer {n} ist groß" for n in range(300)]
LEFT_OUT = [
    ("", "leer", "empty"),
    ("the same", "the same", "untranslated"),
    ("long", "lang " * 20, "length ratio"),
    ("a Russian line", "русская строка", "other script"),
]


def run(folder, **flags):
    prepare.main(FlagValues(**{**DEFAULTS, "output_dir": str(folder), **flags}))
    return Records(folder)


def texts(prepared):
    """The pairs as text, in order. Our texts survive the round trip."""
    pairs = prepared.pairs()
    rows = (
        tf.RaggedTensor.from_row_lengths(ids.flat.astype("int32"), ids.lengths)
        for ids in (pairs.sources, pairs.targets)
    )
    sides = (prepared.vocabulary.detokenize(ids).numpy() for ids in rows)
    return [(source.decode(), target.decode()) for source, target in zip(*sides, strict=True)]


def contents(folder):
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}


def times(folder):
    return {path.name: path.stat().st_mtime_ns for path in pathlib.Path(folder).glob("train-*")}


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """A prepared toy corpus; not to be changed."""
    folder = tmp_path_factory.mktemp("toy") / "prepared"
    run(folder)
    return folder


@pytest.fixture
def copy(toy, tmp_path):
    return shutil.copytree(toy, tmp_path / "copy")


@pytest.fixture(scope="module")
def own():
    return learn([*ENGLISH, *GERMAN], 295)


def test_a_corpus_is_loaded_from_the_cache_that_is_named():
    named = Preparation(corpus={"name": "home_assistant"}, cache_dir="here", strict=False)
    assert named.settings == {"name": "home_assistant", "cache_dir": "here", "strict": None}


@pytest.fixture
def houses(tmp_path):
    """Settings of text files with 300 pairs, ten of them twice, and some to leave out."""
    folder = tmp_path / "text"
    folder.mkdir()
    pairs = [
        *zip(ENGLISH, GERMAN, strict=True),
        *zip(ENGLISH[:10], GERMAN[:10], strict=True),
        *((en, de) for en, de, _ in LEFT_OUT),
    ]
    for prefix, some in (("train", pairs), ("valid", pairs[:2]), ("test", pairs[2:5])):
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in some)
            (folder / f"{prefix}.{language}").write_text(text, encoding="utf-8")
    return {"corpus": "text_files", "data_dir": str(folder)}


def test_every_pair_is_in_one_shard_as_the_vocabulary_tokenizes_it(toy):
    text = corpora.load("reverse", source_language="en", target_language="de", seed=1)
    prepared = Records(toy)
    pairs, vocabulary = prepared.pairs(), prepared.vocabulary
    prepared_ids = zip(listed(pairs.sources), listed(pairs.targets), strict=True)
    both = (text.train.sources, text.train.targets)
    sides = (vocabulary.tokenize(side).to_list() for side in both)
    assert sorted(prepared_ids) == sorted(zip(*sides, strict=True))
    # A control: in another order.
    assert texts(prepared) != pairs_of(text.train)
    loaded = corpora.load("records", data_dir=toy)
    assert (loaded.valid, loaded.test) == (text.valid, text.test)
    assert all(shard["pairs"] > 800 for shard in prepared.manifest["shards"])


@pytest.mark.parametrize(("options", "expected"), [("", 1), ("--direct_num_workers=2", 7)])
def test_one_worker_reads_the_text_once(options, expected, copy, monkeypatch):
    (copy / "manifest.json").unlink()
    parts = []

    def spy(shards, missing, settings, filters, count, *more):
        parts.append(count)
        return {}

    monkeypatch.setattr("os.cpu_count", lambda: 7)
    monkeypatch.setattr("pipelines.prepare.preparation.make_shards", spy)
    run(copy, parts=None, beam_options=options)
    assert parts == [expected]


def test_the_number_of_parts_changes_no_byte(toy, tmp_path):
    run(tmp_path / "again", parts=5, shards_at_a_time=3)
    assert contents(tmp_path / "again") == contents(toy)


def test_dropped_pairs_are_counted_and_all_others_are_there_once(houses, tmp_path, capsys):
    filters = {"filter_untranslated": True, "max_length_ratio": 3.0, "filter_scripts": True}
    prepared = run(tmp_path / "a p", **houses, **filters)
    assert sorted(texts(prepared)) == sorted(zip(ENGLISH, GERMAN, strict=True))
    expected = {"duplicate": 10, **{reason: 1 for *_, reason in LEFT_OUT}}
    assert prepared.manifest["dropped"] == expected
    printed = capsys.readouterr().out
    counted = "300 pairs in 4 shards, 2 to validate, 3 to test"
    for words in (counted, "10 duplicate", "1 length ratio", "--corpus=records '--data_dir="):
        assert words in printed


def test_control_without_filters_all_but_the_empty_pair_stays(houses, tmp_path):
    prepared = run(tmp_path / "p", **houses, deduplicate=False)
    assert len(prepared) == 310 + len(LEFT_OUT) - 1
    assert prepared.manifest["dropped"] == {"empty": 1}
    assert collections.Counter(texts(prepared))[ENGLISH[3], GERMAN[3]] == 2


def test_the_same_command_again_does_nothing(copy):
    before = {path: path.stat().st_mtime_ns for path in copy.iterdir()}
    run(copy)
    assert {path: path.stat().st_mtime_ns for path in copy.iterdir()} == before


SEVERAL = {
    "00000-of-00004.tfrecord.gz": lambda path: path.unlink(),
    "00002-of-00004.tfrecord.gz": lambda path: path.write_bytes(path.read_bytes()[:-30]),
    "00003-of-00004.json": lambda path: path.unlink(),
}


@pytest.mark.parametrize(
    ("damages", "whole"),
    [(SEVERAL, 1), ({"00002-of-00004.json": lambda path: path.write_text("{")}, 3), ({}, 4)],
    ids=["several files", "a file that is cut", "the manifest alone"],
)
def test_only_missing_shards_are_made_again(toy, copy, damages, whole, capsys):
    before = times(copy)
    (copy / "manifest.json").write_text("{")
    (copy / ".map.tmp").mkdir()
    shards = set()
    for name, damage in damages.items():
        damage(copy / f"train-{name}")
        shards.add(f"train-{name}".partition(".")[0])
    run(copy)
    (copy / ".map.tmp").rmdir()
    assert contents(copy) == contents(toy)
    remade = {f"{shard}.{ending}" for shard in shards for ending in ("tfrecord.gz", "json")}
    assert {name for name, when in times(copy).items() if when != before[name]} == remade
    assert f"going on: {whole} of 4 shards are whole" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "status", "last_line"),
    [(signal.SIGKILL, -signal.SIGKILL, ""), (signal.SIGINT, 130, f"error: {RESUMES}")],
)
def test_a_stopped_preparation_goes_on_and_ends_like_an_uninterrupted_one(
    toy, tmp_path, end, status, last_line
):
    folder = tmp_path / "stopped"
    command = [sys.executable, "-m", "keras_transformer.prepare", f"--output_dir={folder}"]
    command += ["--corpus=reverse", "--vocabulary_size=300", "--shards=4", "--shards_at_a_time=1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while process.poll() is None and not list(folder.glob("train-*.json")):
        time.sleep(0.005)
    process.send_signal(end)
    output, _ = process.communicate()
    assert process.returncode == status, output
    assert not last_line or output.splitlines()[-1] == last_line
    before = times(folder)
    whole = {name for name in before if (folder / f"{name.partition('.')[0]}.json").exists()}
    assert 2 <= len(whole) < 8
    assert not (folder / "manifest.json").exists()
    with pytest.raises(FileNotFoundError, match="not finished"):
        Records(folder)
    run(folder)
    assert contents(folder) == contents(toy)
    assert all(times(folder)[name] == before[name] for name in whole)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("shards", 5, "shards was 4, now 5"),
        ("seed", 2, "seed was 1, now 2"),
        ("vocabulary_size", 301, "vocabulary was 300 pieces, bpe, of 5000000 sentences, now 301"),
        ("filter_scripts", True, "filter_scripts was False, now True"),
    ],
)
def test_other_settings_in_the_same_folder_are_refused(copy, name, value, message):
    before = contents(copy)
    assert message in complaint(ValueError, run, copy, **{name: value})
    assert contents(copy) == before
    # The manifest has the recipe too.
    (copy / "preparation.json").unlink()
    assert message in complaint(ValueError, run, copy, **{name: value})


def test_a_given_vocabulary_is_used(houses, own, tmp_path):
    """Text is replaced before it is cut, by the rules of an imported vocabulary."""
    own = Vocabulary(in_order(own.model, own.pieces[4:], rules=[("house", "Haus")])[0])
    own.save(tmp_path / "own.model")
    prepared = run(tmp_path / "p", **houses, vocabulary=str(tmp_path / "own.model"))
    assert prepared.vocabulary.fingerprint == own.fingerprint
    assert Vocabulary.load(tmp_path / "p" / "vocabulary.model").model == own.model
    assert ("the Haus number 3 is big", GERMAN[3]) in texts(prepared)
    with pytest.raises(FileNotFoundError):
        run(tmp_path / "q", **houses, vocabulary=str(tmp_path / "none.model"))
    learn([*ENGLISH, *GERMAN], 296).save(tmp_path / "q" / "vocabulary.model")
    with pytest.raises(ValueError, match="q has another vocabulary, perhaps that of a run, which"):
        run(tmp_path / "q", **houses, vocabulary=str(tmp_path / "own.model"))


def mixture_of(houses, tmp_path, **member):
    """Settings of a mixture with the houses as its one member."""
    file = tmp_path / "mixture.json"
    languages = {"source_language": "en", "target_language": "de"}
    file.write_text(json.dumps({"corpora": [{**houses, **languages, **member}]}), encoding="utf-8")
    return {"corpus": "mixture", "mixture": str(file)}


# Vocabularies on whose records no run would train; NLLB-200 has such labels.
UNUSABLE = {
    "no tag": (lambda own: own, r"without <2de>\. Name a vocabulary"),
    "word pieces": (lambda own: WordPieces([*SPECIAL, "house"]), "has word pieces, from which"),
    "labels": (
        lambda own: Vocabulary(in_order(own.model, [*own.pieces[4:], "de"], labels=["de"])[0]),
        r"has labels of languages, .*, or another --output_dir\.$",
    ),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_an_unusable_vocabulary_is_refused_before_anything_is_written(houses, own, tmp_path, name):
    """Whether it lies in the folder or a flag names it."""
    mixture = mixture_of(houses, tmp_path, tag="<2de>")
    make, message = UNUSABLE[name]
    vocabularies.save(make(own), tmp_path / "p")
    before = contents(tmp_path / "p")
    [file] = (tmp_path / "p").iterdir()
    for folder, flags, place in (("p", {}, "/p"), ("q", {"vocabulary": str(file)}, file.name)):
        with pytest.raises(ValueError, match=f"{place} {message}"):
            run(tmp_path / folder, **mixture, **flags)
    assert contents(tmp_path / "p") == before
    assert not (tmp_path / "q").exists()


def test_a_vocabulary_in_the_folder_is_used_and_recorded(houses, own, tmp_path):
    folder = tmp_path / "p"
    own.save(folder / "vocabulary.model")
    prepared = run(folder, **houses)
    assert prepared.vocabulary.fingerprint == own.fingerprint
    assert prepared.manifest["preparation"]["vocabulary"] == own.fingerprint
    before = contents(folder)
    (folder / "manifest.json").unlink()
    run(folder, **houses)
    assert contents(folder) == before
    learn([*ENGLISH, *GERMAN], 296).save(folder / "vocabulary.model")
    (folder / "manifest.json").unlink()
    with pytest.raises(ValueError, match=rf"vocabulary was {own.fingerprint}, now [0-9a-f]{{16}}"):
        run(folder, **houses)


def test_flags_of_learning_are_refused_beside_a_vocabulary(copy, tmp_path, monkeypatch):
    folder = tmp_path / "given"
    folder.mkdir()
    shutil.copy(copy / "vocabulary.model", folder)
    monkeypatch.setattr("keras_transformer.flags.PLACES", {"vocabulary_size": Argument("")})
    message = r"--vocabulary_size is for .* and .*given has one\. Leave"
    with pytest.raises(ValueError, match=message):
        run(folder, vocabulary_size=99)
    # The control: a vocabulary that a preparation learned is not a given one.
    with pytest.raises(ValueError, match=r"holds another preparation: .*now 99 pieces"):
        run(copy, vocabulary_size=99)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--flagfile=base.flags"], ["--flagfile=base.flags"]),
        (["--shards=2", "--flagfile", "base.flags"], ["--flagfile=base.flags"]),
        (["--shards=2"], None),
        (["--flagfile=parsing.flags"], None),
    ],
)
def test_the_command_to_train_has_the_recipe_and_the_languages(arguments, expected):
    recipe = recipe_of_records(arguments, {"source_language": "fr", "target_language": "en"})
    languages = ["--source_language=fr", "--target_language=en"]
    assert recipe == ([*expected, *languages] if expected else [])


def test_a_preparation_that_an_earlier_version_began_on_a_vocabulary_goes_on(copy, own):
    """An earlier version recorded the settings of learning even if a vocabulary was there."""
    own.save(copy / "vocabulary.model")
    preparation = json.loads((copy / "preparation.json").read_text())
    preparation["fingerprint"] = vocabularies.load(copy).fingerprint
    (copy / "preparation.json").write_text(json.dumps(preparation))
    for path in [copy / "manifest.json", *copy.glob("train-*")]:
        path.unlink()
    run(copy)
    afterwards = json.loads((copy / "preparation.json").read_text())
    assert afterwards == preparation
    assert afterwards["vocabulary"] == "300 pieces, bpe, of 5000000 sentences"


def test_a_mixture_whose_file_has_changed_is_another_preparation(houses, tmp_path):
    """Its vocabulary has the tag of the corpus, and is used."""
    learn([*ENGLISH, *GERMAN], 296, tags=["<2de>"]).save(tmp_path / "tagged.model")
    vocabulary = {"vocabulary": str(tmp_path / "tagged.model")}
    for _ in range(2):
        prepared = run(tmp_path / "p", **mixture_of(houses, tmp_path, tag="<2de>"), **vocabulary)
    assert "<2de>" in prepared.vocabulary.pieces
    with pytest.raises(ValueError, match=r"holds another preparation: members was \[.*<2de>"):
        run(tmp_path / "p", **mixture_of(houses, tmp_path), **vocabulary)


@pytest.mark.parametrize(
    "kind", ["text files", "a mixture of them", "translate_folder", "treebank"]
)
def test_text_that_has_changed_is_another_preparation(houses, tmp_path, kind):
    corpus_flags = mixture_of(houses, tmp_path) if kind == "a mixture of them" else houses
    text = pathlib.Path(houses["data_dir"]) / "train.de"
    if kind == "translate_folder":
        pytest.importorskip("tensorflow_datasets")
        for path in [*text.parent.iterdir()]:
            path.rename(text.parent / f"{path.suffix[1:]}.{path.stem}.txt")
        text = text.parent / "de.train.txt"
        splits = ("train", "valid", "test")
        corpus_flags = houses | {"corpus": "tfds", "dataset": kind, "splits": splits}
    if kind == "treebank":
        for path in [*text.parent.glob("*.de")]:
            trees = "".join(f"(S (N Haus) (V {number}))\n" for number in range(30))
            path.with_suffix(".trees").write_text(trees)
        text = text.with_suffix(".trees")
        corpus_flags = houses | {"corpus": kind}
    run(tmp_path / "p", **corpus_flags)
    before = contents(tmp_path / "p")
    text.with_suffix(".fr").write_text("Other languages change nothing.")
    text.write_text(text.read_text())
    run(tmp_path / "p", **corpus_flags)
    text.write_text(text.read_text().replace("Haus", "Heim"))
    with pytest.raises(ValueError, match=r"holds another preparation: text was \w{16}, now \w"):
        run(tmp_path / "p", **corpus_flags)
    shutil.rmtree(houses["data_dir"])
    run(tmp_path / "p", **corpus_flags)
    assert contents(tmp_path / "p") == before


@pytest.mark.slow
def test_each_side_is_tokenized_by_a_vocabulary_of_its_own(houses, tmp_path):
    prepared = run(tmp_path / "p", **houses, vocabularies="separate")
    both = prepared.vocabulary
    assert (both.kind, both.source.size) == ("separate", 300)
    pairs = prepared.pairs()
    english = both.source.tokenize(ENGLISH).to_list()
    german = both.target.tokenize(GERMAN).to_list()
    ids = [*zip(listed(pairs.sources), listed(pairs.targets), strict=True)]
    assert all(pair in ids for pair in zip(english, german, strict=True))
    assert not (tmp_path / "p" / "vocabulary.model").exists()
    files = ",".join(map(str, vocabularies.paths("separate", tmp_path / "p")))
    again = run(tmp_path / "q", **houses, vocabulary=files)
    assert again.vocabulary.fingerprint == both.fingerprint
    message = r"vocabulary was 300 pieces a language, bpe, of .*, now 3"
    with pytest.raises(ValueError, match=message):
        run(tmp_path / "p", **houses)


def test_a_lost_vocabulary_is_learned_again_as_it_was(toy, copy, own):
    own.save(copy / "vocabulary.model")
    with pytest.raises(ValueError, match=r"fingerprint was [0-9a-f]{16}, now [0-9a-f]{16}"):
        run(copy)
    (copy / "vocabulary.model").unlink()
    run(copy)
    assert contents(copy) == contents(toy)


def test_a_folder_must_be_named_and_a_size_that_cannot_be_learned_leaves_none(tmp_path):
    with pytest.raises(ValueError, match="--output_dir is missing"):
        prepare.main(FlagValues(**DEFAULTS))
    with pytest.raises(ValueError, match="`vocabulary_size`"):
        run(tmp_path / "p", vocabulary_size=10)
    assert not (tmp_path / "p").exists()


def test_faults_in_the_text_are_reported_unchanged_through_beam(houses, tmp_path, toy):
    path = pathlib.Path(houses["data_dir"], "train.de")
    path.write_bytes(path.read_bytes() + b"M\xfcnchen\n")
    with open(pathlib.Path(houses["data_dir"], "train.en"), "a") as file:
        file.write("Munich\n")
    message = complaint(
        ValueError, run, tmp_path / "p", **houses, vocabulary=str(toy / "vocabulary.model")
    )
    place = f"{path}, line {300 + 10 + len(LEFT_OUT) + 1}"
    assert message.startswith(f"{place}: must be UTF-8. Received: byte 0xfc at place 2")
    assert message.endswith("Convert the file, for example with iconv.")


@pytest.mark.parametrize("kind", [ValueError, FileNotFoundError])
def test_an_error_of_a_worker_is_reported_without_what_beam_adds(kind):
    text = "a fault [while running 'read/FlatMap']"
    traceback = "Traceback (most recent call last):\n  File x, in y\nRuntimeError: other\n"
    for error in (kind(text), RuntimeError(f"{traceback}{kind.__name__}: {text}\n")):
        original = beam_runner.original(error)
        assert str(original) == "a fault"
        assert isinstance(original, OSError if kind is FileNotFoundError else ValueError)
    error = OSError("[Errno 28] No space left on device: '/a/b' [while running 'write']")
    original = beam_runner.original(error)
    assert (original.errno, original.filename) == (28, "/a/b")
    # The control: errors that are not of a worker.
    for text in ("no fault of the text", "x\nKeyError: 'a' [while running 'b']"):
        error = RuntimeError(text)
        assert beam_runner.original(error) is error
    error = kind("a")
    assert beam_runner.original(error) is error


def test_filters_that_leave_no_pair_are_refused(houses, tmp_path, toy):
    nothing = {**houses, "filter_scripts": True, "target_language": "ru"}
    folder = pathlib.Path(houses["data_dir"])
    for split in ("valid", "test"):
        shutil.copy(folder / f"{split}.de", folder / f"{split}.ru")
    (folder / "train.ru").write_text("x y z\n" * (310 + len(LEFT_OUT)))
    message = "no pair is left to learn a vocabulary from: 313 other script, "
    message += r"1 empty \(first: .*train\.en, line 311\) were dropped"
    with pytest.raises(ValueError, match=message):
        run(tmp_path / "p", **nothing)
    with pytest.raises(ValueError, match="no pair is left: 1 empty, 313 other script were dropped"):
        run(tmp_path / "p", **nothing, vocabulary=str(toy / "vocabulary.model"))
    assert not (tmp_path / "p" / "manifest.json").exists()


@settings(max_examples=12)
@given(
    st.lists(st.tuples(st.text(max_size=3), st.text(max_size=3)), max_size=30),
    st.integers(1, 10),
    st.randoms(use_true_random=False),
)
def test_the_sample_is_that_of_the_least_digests_in_any_order(pairs, size, randomness):
    def sampled(pairs):
        return sample(((digest(*pair), *pair) for pair in pairs), size)

    assert sampled(pairs) == sorted(set(pairs), key=lambda pair: digest(*pair))[:size]
    shuffled = list(pairs)
    randomness.shuffle(shuffled)
    assert sampled(shuffled) == sampled(pairs)


def test_a_sample_of_a_long_text_has_the_least_digests_and_is_like_a_random_one():
    pairs = [(str(number), "x") for number in range(20_000)]
    random.Random(0).shuffle(pairs)
    sampled = sample(usable_pairs(pairs, Filters(), collections.Counter()), 500)
    assert sampled == sorted(pairs, key=lambda pair: digest(*pair))[:500]
    assert 9000 < sum(int(source) for source, _ in sampled) / 500 < 11000


@given(st.tuples(st.text(), st.text()), st.tuples(st.text(), st.text()))
@example(("ab", "c"), ("a", "bc"))
@example(("", "abc"), ("ab", "c"))
@example(("1 a", ""), ("1", " a"))
def test_pairs_share_a_digest_only_if_they_are_equal(first, second):
    assert (digest(*first) == digest(*second)) == (first == second)


@pytest.mark.parametrize("package", ["apache_beam", "babel", "regex"])
def test_a_missing_package_is_refused_with_the_command_to_install_it(package, monkeypatch):
    for name in list(sys.modules):
        if name == package or name.startswith(f"{package}."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    message = rf"needs {package}.*pip install 'keras-transformer-nmt\[beam\]'"
    with pytest.raises(ValueError, match=message):
        beam_runner.beam_options()


@pytest.mark.parametrize("options", ["--direct_num_workers=many", "--runner='open"])
def test_options_that_beam_cannot_read_are_refused_in_one_line(options):
    message = complaint(ValueError, beam_runner.beam_options, options)
    assert "`beam_options` must be options of Apache Beam" in message
    assert beam_runner.beam_options("--direct_num_workers=1")  # control
