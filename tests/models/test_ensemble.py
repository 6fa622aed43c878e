"""Several models as one: the mean of their probabilities, in NumPy."""

import keras
import numpy as np
import pytest

from keras_transformer.models import Ensemble, Transformer

SOURCE = np.array([[5, 6, 7, 3], [8, 3, 0, 0]])
TARGET = np.array([[2, 5, 9], [2, 4, 4]])
SIZES = {"vocabulary_size": 11, "num_layers": 1, "d_model": 8, "d_ff": 16, "num_heads": 2}


@pytest.fixture(scope="module")
def models():
    keras.utils.set_random_seed(0)
    return [
        Transformer(**SIZES),
        Transformer(**{**SIZES, "num_layers": 2, "d_model": 12, "num_heads": 3}),
    ]


def mean_log_probabilities(models):
    probabilities = []
    for model in models:
        logits = np.array(model((SOURCE, TARGET)), "float64")
        exponentials = np.exp(logits - logits.max(-1, keepdims=True))
        probabilities.append(exponentials / exponentials.sum(-1, keepdims=True))
    return np.log(np.mean(probabilities, axis=0))


def test_its_log_p_is_that_of_the_mean_probability(models):
    expected = mean_log_probabilities(models)
    np.testing.assert_allclose(Ensemble(models)((SOURCE, TARGET)), expected, rtol=0, atol=1e-5)
    assert np.abs(mean_log_probabilities(models[:1]) - expected).max() > 0.01


def test_it_has_the_weights_of_all_its_models_and_says_that_it_gives_no_attention(models):
    ensemble = Ensemble(models)
    expected = [*models[0].weights, *models[1].weights]
    assert [id(weight) for weight in ensemble.weights] == [id(weight) for weight in expected]
    assert ensemble.hyperparameters == models[0].hyperparameters
    assert [ensemble.gives_attention, models[0].gives_attention] == [False, True]


def test_steps_equal_call(models):
    ensemble = Ensemble(models)
    expected = mean_log_probabilities(models)
    stepper = ensemble.stepper()
    encoded = ensemble.encode(SOURCE)
    state = stepper.start(2)
    assert stepper.growing == [model.stepper().growing for model in models]
    np.testing.assert_array_equal(stepper.is_token(encoded), SOURCE != 0)
    for t in range(3):
        logits, state, attention = stepper(TARGET[:, t : t + 1], t, state, encoded)
        np.testing.assert_allclose(logits[:, 0], expected[:, t], rtol=0, atol=1e-5)
        each = [
            np.mean(model.attention_weights(SOURCE, TARGET)["cross"][:, -1, :, t], axis=1)
            for model in models
        ]
        np.testing.assert_allclose(attention[:, 0], np.mean(each, axis=0), rtol=1e-6, atol=1e-6)


def test_models_of_other_vocabularies_and_none_are_refused(models):
    with pytest.raises(ValueError, match=r"Received: 2, of vocabulary_size=\[11, 12\]"):
        Ensemble([models[0], Transformer(**{**SIZES, "vocabulary_size": 12})])
    with pytest.raises(ValueError, match="at least one"):
        Ensemble([])
