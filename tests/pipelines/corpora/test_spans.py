"""Spans cut out of text: put back they give the text, they have as many words as those of T5, and
they differ each time that a text is trained on.
"""

import collections
import json
from itertools import chain, islice, pairwise

import numpy as np
import pytest
import tensorflow as tf
from command_flags import values_of_task
from hypothesis import given
from hypothesis import strategies as st

from keras_transformer.runs.run import Run
from keras_transformer.tasks import TRAINING
from keras_transformer.tasks.translation.task import Translation
from pipelines import corpora
from pipelines.batches.batching import training_batches
from pipelines.batches.texts import tokenize_pairs
from pipelines.corpora import spans
from pipelines.corpora.spans import SENTINELS, cut, restored
from pipelines.corpora.spans_anew import ARGUMENTS, SpansAnew, whole_texts
from pipelines.random_numbers import key
from pipelines.vocabularies import learn
from pipelines.vocabularies.segmentation import BpeDropout

TEXTS = st.lists(
    st.lists(st.sampled_from(["a", "cat", "sat", "größer", "."]), min_size=2, max_size=300),
    min_size=1,
    max_size=4,
)


# Traced, since hypothesis calls it hundreds of times and eager calls take several times as long.
traced_cut = tf.function(cut, ARGUMENTS, autograph=False)


def cut_all(texts, seed):
    """Sources and targets of texts, each cut by a random number of this seed."""
    sides = traced_cut(tf.constant(texts), key(seed, np.arange(len(texts))))
    return [[text.decode() for text in side.numpy()] for side in sides]


@given(TEXTS, st.integers(0, 2**32))
def test_spans_can_be_put_back(texts, seed):
    for words, source, target in zip(
        texts, *cut_all([" ".join(words) for words in texts], seed), strict=True
    ):
        assert restored(source, target).split() == words
        missing = [word for word in target.split() if word not in SENTINELS]
        assert len(missing) == min(max(1, round(0.15 * len(words))), len(words) - 1)
        names = [word for word in target.split() if word in SENTINELS]
        assert names == list(SENTINELS[: len(names)])
        most = min(max(1, round(len(missing) / 3)), len(words) - len(missing), 31)
        assert len(names) == most + 1
        assert [word for word in source.split() if word in SENTINELS] == names[:-1]
        # No two spans stand side by side.
        assert not any({*pair} <= set(SENTINELS) for pair in pairwise(source.split()))


def test_every_span_is_as_likely():
    """One of three words is cut out; of 14 words, one span of two."""
    sources = collections.Counter(cut_all(["a b c"] * 600, 1)[0])
    assert set(sources) == {"<x0> b c", "a <x0> c", "a b <x0>"}
    assert min(sources.values()) > 150
    words = [f"w{number}" for number in range(14)]
    places = [source.split().index("<x0>") for source in cut_all([" ".join(words)] * 1300, 2)[0]]
    counts = np.bincount(places, minlength=13)
    # Chi squared of 12 degrees of freedom: 36 has a probability of 3e-4.
    assert ((counts - 100) ** 2 / 100).sum() < 36


def test_spans_that_a_model_does_not_name_stay_empty():
    assert restored("a <x0> sat <x1>", "<x1> there <x2>") == "a sat there"
    assert restored("a <x0> sat", "nonsense") == "a sat"


def test_the_corpus_names_its_sentinels_and_drops_lines_without_a_span(tmp_path):
    for name in ("train", "valid", "test"):
        (tmp_path / f"{name}.en").write_text("Thank you for it .\nYes\na <x3> b\n")
    settings = {"source_language": "en", "target_language": "en", "data_dir": tmp_path}
    corpus = corpora.load("spans", **settings, seed=3)
    assert len(corpus.train) == 1
    assert corpus.dropped == {"without a span": 6}
    assert corpus.tags == SENTINELS
    assert (corpus.source_language, corpus.target_language) == ("en", "spans")
    again = corpora.load("spans", **settings, seed=3)
    assert again.train == corpus.train
    member = {**settings, "corpus": "spans", "data_dir": ".", "tag": "<x0>"}
    (tmp_path / "mixture.json").write_text(json.dumps({"corpora": [member]}))
    with pytest.raises(ValueError, match=r"mixture\.json: the tag <x0> is one of corpus spans\. "):
        corpora.load("mixture", mixture=tmp_path / "mixture.json")
    (tmp_path / "valid.en").write_text("Yes\n")
    with pytest.raises(ValueError, match=r"^the file valid holds no line of two words or more"):
        corpora.load("spans", **settings)


@pytest.mark.parametrize("most", [1, 7, 2**18])
def test_lines_may_be_cut_in_parts(tmp_path, monkeypatch, most):
    lines = ["a b", "c d e f g h i j", "k l", "m n o"]
    for name in ("train", "valid", "test"):
        (tmp_path / f"{name}.en").write_text("\n".join(lines))
    settings = {"source_language": "en", "target_language": "en", "data_dir": tmp_path}
    whole = corpora.load("spans", **settings, seed=3).train
    monkeypatch.setattr(spans, "MOST_WORDS", most)
    widths = []
    cut = spans.cut
    monkeypatch.setattr(spans, "cut", lambda *part: widths.append(len(part[0])) or cut(*part))
    assert corpora.load("spans", **settings, seed=3).train == whole
    assert widths == {1: [1] * 4, 7: [1, 1, 2], 2**18: [4]}[most] * 3


# Spans of a mixture that are cut anew in each epoch.
TAG = "<restore>"
LINES = [
    "Thank you for inviting me to your party last week .",
    "Two dogs run over the green grass beside the lake .",
    "It rains .",
]


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    """The file of a mixture of spans and of lines that are copied."""
    folder = tmp_path_factory.mktemp("mixture")
    for split in ("train", "valid", "test"):
        for language in ("en", "xx"):
            (folder / f"{split}.{language}").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    member = '{"corpus": "%s", "data_dir": ".", "source_language": "en", "target_language": "xx"'
    members = (member % "spans" + f', "tag": "{TAG}"}}', member % "text_files" + "}")
    (folder / "tasks.json").write_text('{"corpora": [' + ", ".join(members) + "]}")
    return folder / "tasks.json"


@pytest.fixture(scope="module")
def mixture(tasks):
    return corpora.load("mixture", mixture=tasks)


@pytest.fixture(scope="module")
def vocabulary(mixture):
    return learn(mixture.train.sources, mixture.train.targets, "joint", 350, mixture.tags)


def batches(mixture, vocabulary, longest=100, anew=True, dropout=None):
    """The batches that a run with these spans is trained on, as pairs of texts."""
    train = tokenize_pairs(mixture.train, vocabulary)
    texts = whole_texts(mixture.train, mixture.tags)
    both = {
        side: SpansAnew(number, texts, vocabulary, longest, 4, dropout)
        for number, side in enumerate(("source", "target"))
    }
    stream = training_batches(train.examples(both if anew else {}), 48, seed=5).dataset()
    for (source, _), target, _ in stream.as_numpy_iterator():
        sides = (vocabulary.detokenize(tf.constant(ids)).numpy() for ids in (source, target))
        yield [tuple(map(bytes.decode, pair)) for pair in zip(*sides, strict=True)]


def pairs(stream):
    """Source and target of each example of the first 20 batches."""
    return [*chain(*islice(stream, 20))]


@pytest.fixture(scope="module")
def stream(mixture, vocabulary):
    """The first 40 batches of a run."""
    return [*islice(batches(mixture, vocabulary), 40)]


def test_each_epoch_cuts_other_spans_of_the_same_texts(mixture, vocabulary, stream):
    sources = collections.defaultdict(set)
    for source, target in chain(*stream):
        if target.startswith("<x0>"):
            assert source.startswith(f"{TAG} ")
            text = source.removeprefix(f"{TAG} ")
            sources[restored(text, target)].add(text)
        else:
            # The other task is unchanged.
            assert source == target
            assert source in LINES
    assert set(sources) == set(LINES)
    assert len(sources[LINES[0]]) > 5
    # A control: spans that are cut once.
    fixed = pairs(batches(mixture, vocabulary, anew=False))
    assert len({source for source, _ in fixed if source.startswith(TAG)}) == len(LINES)


def test_a_pair_that_would_become_too_long_keeps_its_first_spans(mixture, vocabulary):
    plain = {*zip(mixture.train.sources, mixture.train.targets, strict=True)}
    texts = {restored(*pair) for pair in plain}
    fewest, most = [len(vocabulary.tokenize(tf.constant([text]))[0]) for text in (LINES[2], TAG)]
    assert {*pairs(batches(mixture, vocabulary, longest=most))} == plain
    for longest in (fewest, 3 * fewest):
        fitting = {*pairs(batches(mixture, vocabulary, longest=longest))}
        assert {restored(*pair) for pair in fitting} == texts
        for pair in fitting - plain:
            assert vocabulary.tokenize(tf.constant(pair)).row_lengths().numpy().max() <= longest
    assert fitting - plain


def test_segmentations_that_vary_leave_the_spans_as_they_are(mixture, vocabulary, stream):
    varied = batches(mixture, vocabulary, dropout=BpeDropout(vocabulary, 0.5, 3))
    assert [*islice(varied, 10)] == stream[:10]


def test_a_run_cuts_spans_anew_only_for_training(tmp_path, tasks):
    def variations(*more):
        flags = ("--flagfile=toy.flags", "--vocabulary_size=350", "--norelease", "--seed=7", *more)
        corpus = ("--corpus=mixture", f"--mixture={tasks}", f"--model_dir={tmp_path / 'run'}")
        languages = ("--source_language=en", "--target_language=spans+xx")
        values = values_of_task(Translation, *flags, *corpus, *languages)
        run = Run(Translation, values, TRAINING)
        run._prepare_folder()
        assert run.task.examples("valid").variations == {}
        return run.task.examples("train").variations

    sides = variations("--bpe_dropout=0.1", "--max_train_length=90")
    assert [(side, type(spans), spans.seed) for side, spans in sides.items()] == [
        ("source", SpansAnew, 7),
        ("target", SpansAnew, 7),
    ]
    assert {(spans.longest, type(spans.variation)) for spans in sides.values()} == {
        (90, BpeDropout)
    }
    # Sequences of any length have no static shape.
    assert variations("--static_shapes", "--max_train_length=90") == {}
