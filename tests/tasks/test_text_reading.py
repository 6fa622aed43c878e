"""The tasks of encoder-only models before training: batches, refusals, and initial weights; and a
tagger reads texts as in training.
"""

import dataclasses
import re
import shutil
import types

import numpy as np
import pytest
import tensorflow as tf
from command_flags import NO_FLAGS, new_module, values_of_task
from small_model import eagerly

from keras_transformer.inference.text_reader import TextReader
from keras_transformer.models import (
    Hyperparameters,
    MaskedLanguageModel,
    TextClassifier,
    TokenClassifier,
)
from keras_transformer.runs.folder import RunFolder
from keras_transformer.runs.initialization import initialize
from keras_transformer.tasks.labelling.module import LABELS_FILE, TagModule, names_of
from keras_transformer.tasks.labelling.task import Classification, LabelScorer, Tagging
from keras_transformer.tasks.masking.task import Masking, MaskingScorer, measure
from keras_transformer.training.checkpoint import WEIGHTS
from pipelines.batches import labelled_texts
from pipelines.batches.batching import evaluation_batches
from pipelines.corpora.parallel_text import ParallelText
from pipelines.vocabularies import vocabulary

SIZES = ("--num_layers=1", "--vocabulary_size=290", "--d_model=16", "--d_ff=16", "--num_heads=2")
FLAGS = ("--flagfile=bert.flags", *SIZES)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    for split in ("train", "valid", "test"):
        (folder / f"{split}.en").write_text("turn on the lamp\nwhat is the time\n" * 3)
        (folder / f"{split}.topic").write_text("lamp\ntime\n" * 3)
        (folder / f"{split}.tags").write_text("O O O B-name\nO O O O\n" * 3)
    return folder


@pytest.fixture(scope="module")
def task_of(text, tmp_path_factory):
    """A function of a task's class and arguments: the task, with its files written and read."""

    def make_task(kind, *arguments):
        corpus = "--corpus=lines" if kind is Masking else "--corpus=text_files"
        target = "tags" if kind is Tagging else "topic"
        flags = (*FLAGS, corpus, f"--data_dir={text}", f"--target_language={target}", *arguments)
        task = kind(values_of_task(kind, *flags))
        folder = RunFolder(tmp_path_factory.mktemp("run"))
        task.write_files(folder)
        task.read_files(folder)
        task.folder = folder
        return task

    return make_task


def test_a_batch_of_masking_hides_what_it_asks_for(task_of):
    task = task_of(Masking, "--mask_share=0.5")
    batches = evaluation_batches(task.examples("valid"), 100)
    for (tokens, segments, places), pieces, weights in batches:
        pieces_read = tf.gather(tokens, places, batch_dims=1).numpy()
        assert (pieces_read[weights.numpy() > 0] == task.vocabulary.marks.mask).mean() > 0.5
        restored = tf.tensor_scatter_nd_update(
            tokens, tf.stack([np.indices(places.shape)[0], places], axis=-1), pieces
        )
        words = task.vocabulary.detokenize(
            tf.RaggedTensor.from_tensor(restored[:, 1:], padding=0)[:, :-1]
        )
        assert set(words.numpy().tolist()) <= {b"turn on the lamp", b"what is the time"}
        assert not segments.numpy().any()


def test_a_classifier_knows_the_labels_of_its_training_side(task_of):
    task = task_of(Classification, "--labelled_examples=4", "--seed=3")
    assert task.names == ["lamp", "time"]
    assert len(task.examples("train")) == 4
    with pytest.raises(ValueError, match=r"--labelled_examples must be at most 6, .*Received: 7\."):
        task_of(Classification, "--labelled_examples=7")


def test_the_rarest_label_is_that_of_the_texts_to_train_on(task_of, capsys):
    task_of(Classification, "--labelled_examples=1").introduce()
    assert re.search("2 labels, the rarest (lamp|time): 0 of 1 texts", capsys.readouterr().out)


def test_a_blank_text_of_files_is_left_out_as_from_a_split(tmp_path):
    (tmp_path / "a").write_text("turn on\n\nthe time\n")
    (tmp_path / "b").write_text("lamp\nlamp\ntime\n")
    values = {"source_file": str(tmp_path / "a"), "reference_file": str(tmp_path / "b")}
    scorer = LabelScorer({"labels": {"names": ["lamp", "time"]}}, "m", {**NO_FLAGS, **values})
    text = scorer._text
    assert [*text.sources] == ["turn on", "the time"]
    assert text.place(1, "the text").endswith("b, line 3")
    (tmp_path / "a").write_text("\n\n\n")
    with pytest.raises(ValueError, match="hold no labelled text"):
        LabelScorer({"labels": {"names": ["lamp", "time"]}}, "m", {**NO_FLAGS, **values})


@pytest.mark.parametrize("kind", [Masking, Classification, Tagging])
def test_the_attention_of_a_text_does_not_depend_on_its_batch(task_of, kind):
    task = task_of(kind)
    attend = new_module(task, task.folder).attend
    together = attend(text=tf.constant(["turn on the lamp", "time"]))
    for number, text in enumerate(["turn on the lamp", "time"]):
        alone = attend(text=tf.constant([text]))
        pieces = alone["pieces"][0].numpy().tolist()
        count = len(pieces)
        assert (pieces[0], pieces[-1]) == (b"<s>", b"</s>")
        assert b"".join(pieces[1:-1]).decode().replace("▁", " ").strip() == text
        assert together["pieces"][number, :count].numpy().tolist() == pieces
        weights = alone["encoder"][0].numpy()
        assert weights.shape == (1, 2, count, count)
        np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)
        in_batch = together["encoder"][number, :, :, :count, :count]
        np.testing.assert_allclose(in_batch, weights, atol=1e-6)


def test_a_tagger_gives_a_tag_for_each_word(task_of):
    task = task_of(Tagging, "--labelled_examples=4")
    assert task.names == ["B-name", "I-name", "O"]
    assert len(task.examples("train")) == 4
    module = new_module(task, task.folder)
    reader = TextReader.of(module)
    # Beyond the 128 positions of the model nothing is read.
    texts = ["turn on", "", "lamp on time", "the " * 150]
    together = reader.tags(texts)
    assert list(map(len, together)) == [2, 0, 3, 150]
    assert together == [reader.tags([text])[0] for text in texts]
    answer = module.tag(tf.constant(texts))
    assert answer["words"].numpy()[0, :3].tolist() == [b"turn", b"on", b""]
    shares = answer["probabilities"].numpy()
    assert (shares[0, :2] > 1 / 4).all()
    assert not shares[0, 2:].any()
    assert shares[3, 0] > 0
    assert shares[3, -1] == 0
    assert set(together[3][126:]) == {"O"}
    with pytest.raises(ValueError, match=r"has no classify\. Received: a model with .*tag\. Name"):
        reader.labels(texts)


@pytest.mark.parametrize("kind", [Classification, Tagging])
def test_an_error_names_the_file_and_its_own_line(task_of, text, tmp_path, kind, capsys):
    """Although empty lines are left out first, and training text is shuffled."""
    shutil.copytree(text, tmp_path, dirs_exist_ok=True)
    ending, wrong = ("tags", "O O O B-new") if kind is Tagging else ("topic", "new")
    for name, line in (("en", "turn on the lamp"), (ending, wrong)):
        path = tmp_path / f"valid.{name}"
        path.write_text(f"\n\n{path.read_text()}{line}\n")
    task = task_of(kind, f"--data_dir={tmp_path}")
    with pytest.raises(ValueError, match=rf"valid\.{ending}, line 9 has '(B-)?new'"):
        task.introduce()
    task_of(kind).introduce()
    summary = "2 labels, the rarest lamp: 3 of 6 texts to train"
    if kind is Tagging:
        summary = "3 tags, the rarest B-name: 3 of 24 words to train"
    assert summary in capsys.readouterr().out


def test_a_row_of_tags_too_long_is_dropped_and_refused_by_strict(task_of, text, tmp_path, capsys):
    shutil.copytree(text, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "train.tags"
    path.write_text(path.read_text() + "O O\n")
    (tmp_path / "train.en").write_text((tmp_path / "train.en").read_text() + "go\n")
    task_of(Tagging, f"--data_dir={tmp_path}").introduce()
    report = f"dropped: 1 with unequal words and tags (first: {path}, line 7)"
    assert report in capsys.readouterr().out
    with pytest.raises(ValueError, match=r"train\.tags, line 7 has 1 words, 'go', and 2 tags"):
        task_of(Tagging, f"--data_dir={tmp_path}", "--strict")


def test_a_length_without_room_for_the_mark_is_refused():
    with pytest.raises(ValueError, match=r"--max_train_length=128 needs 129 .*Try .*=127\."):
        Masking(values_of_task(Masking, *FLAGS, "--max_train_length=128"))


@pytest.mark.parametrize("kind", [LabelScorer, MaskingScorer])
def test_a_checkpoint_is_scored_with_its_own_weights(kind, tmp_path, monkeypatch):
    class Reloaded(Exception):
        pass

    def reload(folder, values):
        raise Reloaded(folder.newest_weights())

    (tmp_path / "model.json").write_text("{}")
    weights = tmp_path / "averaged.npz"
    weights.touch()
    (tmp_path / "own.txt").write_text("a\n")
    values = {**NO_FLAGS, "split": None, "reference_file": str(tmp_path / "own.txt")}
    monkeypatch.setattr(Classification, "reload", reload)
    monkeypatch.setattr(Masking, "reload", reload)
    if kind is LabelScorer:
        values["source_file"] = values["reference_file"]
    sizes = Hyperparameters(vocabulary_size=9).as_dict()
    description = {
        "task": "classification" if kind is LabelScorer else "masking",
        "hyperparameters": sizes,
        "labels": {"names": ["a"]},
    }
    scorer = kind(description, str(weights), values)
    with pytest.raises(Reloaded) as raised:
        scorer.examine({"precision": "float32"}, 1)
    assert raised.value.args == (weights,)


def test_a_vocabulary_of_more_pieces_than_the_flag_is_refused(task_of, tmp_path):
    task_of(Masking).vocabulary.save(tmp_path / "vocabulary.model")
    task = Masking(values_of_task(Masking, *FLAGS, "--vocabulary_size=280"))
    with pytest.raises(ValueError, match=r"size must be at least 290, .*Received: 280\. Pass"):
        task.read_files(RunFolder(tmp_path))
    # Of fewer pieces, it decides.
    task = Masking(values_of_task(Masking, *FLAGS, "--vocabulary_size=300"))
    task.read_files(RunFolder(tmp_path))
    assert (
        task.hyperparameters.vocabulary_size
        == task.description()["hyperparameters"]["vocabulary_size"]
        == 290
    )


def test_the_body_is_carried_over_and_the_heads_stay(task_of):
    task = task_of(Classification)
    masked_model = MaskedLanguageModel(task.hyperparameters)
    weights = {WEIGHTS + weight.path: weight.numpy() + 1.0 for weight in masked_model.weights}
    model = TextClassifier(task.hyperparameters, 2)
    before = {weight.path: weight.numpy() for weight in model.weights}
    initialize(model, weights, layers=task.carried_over)
    for weight in model.weights:
        expected = weights.get(WEIGHTS + weight.path, before[weight.path])
        np.testing.assert_array_equal(weight.numpy(), expected)
    carried = [weight.path for weight in model.weights if WEIGHTS + weight.path in weights]
    assert len(carried) == len(model.weights) - 4
    # The control: all of it does not fit.
    with pytest.raises(ValueError, match="`weights` must have the names and shapes"):
        initialize(model, weights)


@pytest.mark.parametrize(
    ("kind", "targets", "message"),
    [
        (Classification, ["lamp", "door"], r"the test side.*door|door.*the test side"),
        (Tagging, ["O O O O", "O O O"], r"the test side, text 2 has 4 words"),
        (Tagging, ["O O O B-song", "O O O O"], r"B-song"),
        (Tagging, ["", " "], r"^the test side, text 1 and all after it have no word to tag\."),
    ],
)
def test_labels_that_could_not_be_scored_are_refused_at_once(task_of, kind, targets, message):
    task = task_of(kind)
    task.introduce()
    sources = ["turn on the lamp", "what is the time"] if "".join(targets).strip() else targets
    test = ParallelText(sources, targets)
    task.corpus = dataclasses.replace(task.corpus, test=test)
    with pytest.raises(ValueError, match=message):
        task.introduce()


@pytest.mark.parametrize("kind", [Classification, Tagging])
def test_text_without_labels_is_refused(task_of, kind):
    """Each line would be its own label, and each word its own tag."""
    with pytest.raises(ValueError, match=r"needs labels\. Received: corpus=lines, which has none"):
        task_of(kind, "--corpus=lines")


def test_hidden_pieces_are_guessed_among_those_of_text(task_of, monkeypatch):
    task = task_of(Masking)
    own = task.vocabulary
    texts = tf.constant([f"turn {own.marks.name} the {own.marks.name}", "the lamp"])
    with eagerly():
        module = new_module(task, task.folder)
        answer = {name: part.numpy() for name, part in module.fill_mask(text=texts).items()}
        tokens = module.tokens(texts).numpy()
        places = np.flatnonzero(tokens[0] == own.marks.mask)
        logits = module.logits(tokens[:1], np.zeros_like(tokens[:1]), places[None])[0]
    shares = tf.nn.softmax(tf.gather(logits, own.marks.ordinary, axis=1)).numpy()
    order = np.argsort(-shares)[:, :10]
    guessed = own.marks.ordinary[order]
    assert answer["pieces"][0].tolist() == tf.gather(own.pieces, guessed).numpy().tolist()
    expected = np.take_along_axis(shares, order, axis=1)
    np.testing.assert_allclose(answer["probabilities"][0], expected, rtol=1e-5)
    assert not answer["probabilities"][1].any()
    tokens[0, places] = guessed[:, 0]
    [whole] = own.detokenize(tf.ragged.constant([tokens[0, 1:-1]])).numpy()
    assert answer["filled"].tolist() == [whole, b"the lamp"]
    # The unread end of a long text is returned as it was. A space before a mask belongs to it.
    ends = [" on the lamp", f" on the lamp{own.marks.name}"]
    calls = []
    tokenize = type(own).tokenize
    monkeypatch.setattr(type(own), "tokenize", lambda *its: calls.append(1) or tokenize(*its))
    with eagerly():
        module.longest = 4
        texts = tf.constant([own.marks.name + end for end in ends])
        filled = module.fill_mask(text=texts)["filled"].numpy()
    assert len(calls) == 1
    assert [line.decode().partition(" ")[2] for line in filled] == [end[1:] for end in ends]
    assert not any(line.decode().startswith(own.marks.name) for line in filled)


def test_a_perplexity_that_no_float_holds_is_none_in_json():
    """As after a training that went wrong while its loss was still finite."""
    logits = tf.constant([[0.0, 3000.0]] * 3)
    module = types.SimpleNamespace(logits=lambda tokens, segments, places: logits)
    batch = ((None, None, None), tf.constant([0, 0, 1]), tf.ones(3))
    numbers = measure(module, [batch])
    assert numbers == {"pieces": 3, "cross_entropy": 2000.0, "perplexity": None, "accuracy": 0.3333}


KNOWN = [f"B-{letter}" for letter in "abcdefgh"]
TEXTS = ["turn <mask> on the lamp", "turn on the lamp", "<mask> <mask> the lamp now"]


@pytest.fixture(scope="module")
def tagger_pieces():
    return vocabulary.learn(["turn on the lamp", "what is it now"] * 3, 290, [vocabulary.MASK])


@pytest.fixture(scope="module")
def tagger(tagger_pieces):
    sizes = {"num_layers": 1, "d_model": 16, "d_ff": 16, "num_heads": 2, "positions": "learned"}
    hyperparameters = Hyperparameters(vocabulary_size=tagger_pieces.size, max_positions=20, **sizes)
    classifier = TokenClassifier(hyperparameters, len(KNOWN))
    random = np.random.default_rng(1)
    # Norms and biases stay as they are, so that other words have other tags.
    for weights in classifier.weights:
        if len(weights.shape) > 1:
            weights.assign(random.normal(0, 1, weights.shape))
    return classifier


def test_a_damaged_file_of_labels_is_named(tmp_path):
    (tmp_path / LABELS_FILE).write_text("[")
    with pytest.raises(ValueError, match=r"labels\.json is damaged: .* They stand in model\.json"):
        names_of(RunFolder(tmp_path))


def tags_of(module, texts):
    with eagerly():
        outputs = module.tag(tf.constant(texts))
    return [[tag.decode() for tag in row if tag] for row in outputs["tags"].numpy()]


def tags_in_training(tagger, tagger_pieces, texts, max_length):
    """The tags of the words of texts that a training reads, by its batches, in any order."""
    tags = ["B-a " * len(text.split()) for text in texts]
    examples = labelled_texts.tagged_examples(
        texts, tags, KNOWN, tagger_pieces, max_length, "the text"
    )
    for inputs, _, weights in evaluation_batches(examples, 1000):
        best = np.argmax(tagger(inputs), axis=-1)
        for row, is_first in zip(best, weights.numpy(), strict=True):
            yield [KNOWN[number] for number in row[is_first > 0]]


def test_words_behind_a_mask_have_their_own_tags(tagger, tagger_pieces):
    """The space before a mask is dropped where hidden words are guessed, but not here."""
    rows = tags_of(TagModule(tagger, tagger_pieces, KNOWN), TEXTS)
    assert sorted(rows) == sorted(tags_in_training(tagger, tagger_pieces, TEXTS, 50))
    assert list(map(len, rows)) == [5, 4, 5]
    assert len({tag for row in rows for tag in row}) > 2


def test_a_long_text_is_cut_as_in_training(tagger, tagger_pieces):
    text = "the " * 24
    module = TagModule(tagger, tagger_pieces, KNOWN)
    [row] = tags_of(module, [text])
    # The token for the beginning takes one place.
    [expected] = tags_in_training(tagger, tagger_pieces, [text], module.longest - 1)
    assert row == expected + ["O"] * (24 - len(expected))
    assert 6 < len(expected) < 24
    # The control: cut one token earlier, the text has other tags.
    assert [*tags_in_training(tagger, tagger_pieces, [text], module.longest - 2)] != [expected]
