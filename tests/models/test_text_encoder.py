"""Encoder-only models, imported from folders of transformers, against its models on torch."""

import numpy as np
import pytest
from theirs import random_of_theirs, torch, transformers

from keras_transformer.imports import hugging_face
from keras_transformer.models import (
    BareTextEncoder,
    MaskedLanguageModel,
    TextClassifier,
    TokenClassifier,
)

TOKENS = np.array([[2, 5, 6, 7, 8, 3], [2, 9, 10, 3, 0, 0], [2, 11, 12, 4, 9, 3]])
SEGMENTS = np.array([[0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0], [0, 0, 1, 1, 1, 1]])
PLACES = np.tile(np.arange(6), (3, 1))
REAL = TOKENS != 0
CONFIG = {"vocab_size": 13, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4}
CONFIG |= {"intermediate_size": 32, "max_position_embeddings": 8, "num_labels": 5}


def theirs(name, **changes):
    config = transformers.BertConfig(**{**CONFIG, **changes})
    return random_of_theirs(getattr(transformers, name), config, seed=3, scale=0.1)


def their_output(module):
    with torch.no_grad():
        return module(
            input_ids=torch.tensor(TOKENS),
            attention_mask=torch.tensor(REAL),
            token_type_ids=torch.tensor(SEGMENTS),
        )


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    """A function that saves a model of theirs and imports the folder as a model of ours."""

    def imported(module):
        folder = tmp_path_factory.mktemp("bert")
        module.save_pretrained(folder)
        return hugging_face.load(folder)

    return imported


def deviation(ours, theirs):
    theirs = theirs.numpy()
    assert ours.shape == theirs.shape
    assert np.abs(theirs).max() > 0.3
    return np.abs(np.asarray(ours) - theirs).max() / max(1.0, np.abs(theirs).max())


@pytest.fixture(scope="module")
def masked(ours):
    module = theirs("BertForMaskedLM")
    model = ours(module)
    assert isinstance(model, MaskedLanguageModel)
    return module, model


def test_logits_of_pieces_and_states_are_those_of_transformers(masked):
    module, model = masked
    logits = model((TOKENS, SEGMENTS, PLACES))
    output = their_output(module)
    assert deviation(logits[REAL], output.logits[REAL]) < 1e-5
    states = model.states(TOKENS, SEGMENTS)
    with torch.no_grad():
        expected = module.bert(
            torch.tensor(TOKENS), torch.tensor(REAL), torch.tensor(SEGMENTS)
        ).last_hidden_state
    assert deviation(states.numpy()[REAL], expected[REAL]) < 1e-5


def test_logits_at_some_places_are_those_of_the_whole_text(masked):
    _, model = masked
    whole = np.asarray(model((TOKENS, SEGMENTS, PLACES)))
    places = np.array([[4, 1], [2, 2], [0, 5]])
    some = np.asarray(model((TOKENS, SEGMENTS, places)))
    np.testing.assert_allclose(some, np.take_along_axis(whole, places[..., None], 1), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "kind", "changes"),
    [
        ("BertForSequenceClassification", TextClassifier, {}),
        ("BertForTokenClassification", TokenClassifier, {}),
        ("BertModel", BareTextEncoder, {"hidden_act": "gelu_new"}),
    ],
)
def test_labels_and_states_are_those_of_transformers(ours, name, kind, changes):
    module = theirs(name, **changes)
    model = ours(module)
    assert isinstance(model, kind)
    our_output = np.asarray(model((TOKENS, SEGMENTS)))
    output = their_output(module)
    expected = output.last_hidden_state if kind is BareTextEncoder else output.logits
    counted = slice(None) if kind is TextClassifier else REAL
    assert deviation(our_output[counted], expected[counted]) < 1e-5


def test_logits_of_the_mean_state_are_those_of_their_formula(ours):
    """In NumPy, from the states without padding."""
    first = ours(theirs("BertForSequenceClassification"))
    model = TextClassifier(first.hyperparameters, 5, pooling="mean")
    with pytest.raises(ValueError, match=r"^`pooling` must be first or mean.*='max'"):
        TextClassifier(first.hyperparameters, 5, pooling="max")
    model.set_weights(first.get_weights())
    states = np.asarray(model.states(TOKENS, SEGMENTS), np.float64)
    means = np.stack([row[real].mean(0) for row, real in zip(states, REAL, strict=True)])
    kernel, bias, labels, offset = map(np.float64, model.get_weights()[-4:])
    expected = np.tanh(means @ kernel + bias) @ labels + offset
    logits = np.asarray(model((TOKENS, SEGMENTS)))
    np.testing.assert_allclose(logits, expected, atol=1e-5)
    # A control: the first state gives other logits.
    assert np.abs(np.asarray(first((TOKENS, SEGMENTS))) - expected).max() > 1e-2


def test_another_bert_is_refused(ours):
    module = theirs("BertModel", hidden_act="tanh")
    with pytest.raises(ValueError, match=r"`hidden_act` of .* one of gelu, .*Received: tanh\."):
        ours(module)
    with pytest.raises(ValueError, match=r"`architectures` .* one of BertModel.*Received: BertFor"):
        ours(theirs("BertForMultipleChoice"))
