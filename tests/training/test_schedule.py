"""Section 5.3: equation 3 at every kind of step, and its way into a saved model; the cosine and the
constant rate beside it.
"""

import math

import keras
import numpy as np
import pytest
from oracles import paper

from keras_transformer.models import Transformer
from keras_transformer.training.loss import LabelSmoothedCrossEntropy
from keras_transformer.training.schedule import (
    TransformerSchedule,
    constant_schedule,
    cosine_schedule,
    schedule,
)


@pytest.mark.parametrize(
    ("d_model", "warmup_steps"), [(512, 4000), (1024, 4000), (64, 10), (256, 1)]
)
def test_the_rate_is_equation_3(d_model, warmup_steps):
    schedule = TransformerSchedule(d_model, warmup_steps)
    steps = [*range(1, 200), 3998, 3999, 4000, 4001, 4002, 10_000, 100_000, 300_000]
    actual = [float(schedule(step - 1)) for step in steps]  # Keras counts the updates already made
    np.testing.assert_allclose(
        actual,
        [paper.learning_rate(step, d_model, warmup_steps) for step in steps],
        rtol=1e-6,
        atol=0,
    )


def test_scale_is_a_factor_on_the_whole_curve():
    plain, scaled = TransformerSchedule(512), TransformerSchedule(512, scale=2.5)
    for step in (0, 100, 3999, 50_000):
        assert float(scaled(step)) == pytest.approx(2.5 * float(plain(step)), rel=1e-6)


@pytest.mark.parametrize("name", ["d_model", "warmup_steps", "scale"])
@pytest.mark.parametrize("value", [0, -1])
def test_what_is_not_positive_is_refused_by_name(name, value):
    with pytest.raises(
        ValueError, match=rf"`{name}` must be positive\. Received: {name}={value}\."
    ):
        TransformerSchedule(**{"d_model": 512, name: value})


def cosine(step, peak, warmup_steps, total_steps):
    """SGDR's equation 5 (Loshchilov and Hutter 2016) behind a linear warm-up: eta_min + (eta_max -
    eta_min) (1 + cos(pi T / T_i)) / 2.
    """
    if step <= warmup_steps:
        return peak * step / warmup_steps
    done = min((step - warmup_steps) / (total_steps - warmup_steps), 1.0)
    return peak * (1 + math.cos(math.pi * done)) / 2


COSINES = [(1e-3, 100, 1000), (3e-4, 4000, 100_000), (0.5, 1, 2), (2.0, 7, 60)]


@pytest.mark.parametrize("arguments", COSINES)
def test_the_cosine_is_that_of_sgdr_behind_a_warm_up(arguments):
    schedule = cosine_schedule(*arguments)
    _, warmup_steps, total_steps = arguments
    steps = [
        *range(1, 50),
        warmup_steps - 1,
        warmup_steps,
        warmup_steps + 1,
        total_steps // 2,
        *range(total_steps - 5, total_steps + 5),
    ]
    steps = sorted({max(step, 1) for step in steps})
    actual = [float(schedule(step - 1)) for step in steps]  # Keras counts the updates already made
    # Keras' float32 has no digits left where 1 + cos(pi done) is below 1e-7: at the very end.
    np.testing.assert_allclose(
        actual, [cosine(step, *arguments) for step in steps], rtol=1e-5, atol=1e-7 * arguments[0]
    )


def test_the_constant_rate_rises_and_stays():
    rates = [float(constant_schedule(0.3, 4)(updates)) for updates in range(7)]
    np.testing.assert_allclose(
        rates, [0.3 * min(step / 4, 1.0) for step in range(1, 8)], rtol=1e-6, atol=0
    )
    assert float(constant_schedule(0.3, 1)(0)) == pytest.approx(0.3, rel=1e-7)


CURVES = [TransformerSchedule(64, 3, 2.0), cosine_schedule(2e-3, 3, 9), constant_schedule(2e-3, 3)]


@pytest.mark.parametrize("schedule", CURVES)
@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
def test_the_step_may_be_a_tensor(schedule, dtype):
    rate = schedule(keras.ops.convert_to_tensor(1, dtype=dtype))
    assert keras.backend.standardize_dtype(rate.dtype) == "float32"
    assert float(rate) == pytest.approx(float(schedule(1)), rel=1e-6)


@pytest.mark.parametrize("schedule", CURVES)
def test_config_round_trip(schedule):
    clone = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(schedule))
    assert (type(clone), clone.get_config()) == (type(schedule), schedule.get_config())
    assert [float(clone(updates)) for updates in range(12)] == [
        float(schedule(updates)) for updates in range(12)
    ]


@pytest.mark.parametrize("name", ["cosine", "constant"])
@pytest.mark.parametrize("peak", [None, 0.02])
def test_the_peak_of_a_run_is_its_rate_or_the_paper_s(name, peak):
    rates = [float(schedule(name, 64, 5, 2.0, peak, 50)(updates)) for updates in range(50)]
    expected = peak or 2.0 * (64 * 5) ** -0.5
    assert max(rates) == pytest.approx(expected, rel=1e-6)
    assert np.argmax(rates) == 4
    assert rates[-1] == pytest.approx(expected if name == "constant" else 0.0, abs=1e-7)


def test_the_paper_s_is_chosen_with_its_scale():
    chosen = schedule("transformer", 64, 5, 2.0, None, 50)
    assert chosen.get_config() == TransformerSchedule(64, 5, 2.0).get_config()


def test_the_optimizer_uses_it_step_by_step():
    optimizer = keras.optimizers.SGD(TransformerSchedule(64, warmup_steps=3))
    weight = keras.Variable(0.0)
    expected = 0.0
    for step in range(1, 7):
        optimizer.apply([keras.ops.ones(())], [weight])
        expected -= paper.learning_rate(step, 64, 3)
    assert float(weight) == pytest.approx(expected, rel=1e-5)


# Keras 3.15 hands TensorFlow's variables to NumPy 2.4 as they are.
@pytest.mark.filterwarnings(
    "ignore:__array__ implementation doesn't accept a copy keyword:DeprecationWarning"
)
def test_a_trained_model_with_the_schedule_saves_and_goes_on_after_loading(tmp_path):
    ids = np.full((2, 3), 4)
    model = Transformer(
        vocabulary_size=7, num_layers=1, d_model=8, d_ff=8, num_heads=2, dropout=0.0
    )
    optimizer = keras.optimizers.Adam(
        TransformerSchedule(8, warmup_steps=5, scale=2.0), 0.9, 0.98, 1e-9
    )
    model.compile(optimizer, LabelSmoothedCrossEntropy(0.2), run_eagerly=True)
    model.fit((ids, ids), ids, verbose=0)
    model.save(tmp_path / "trained.keras")
    loaded = keras.models.load_model(tmp_path / "trained.keras")
    assert loaded.optimizer._learning_rate.get_config() == optimizer._learning_rate.get_config()
    assert loaded.loss.get_config() == model.loss.get_config()
    for each in (model, loaded):
        each.fit((ids, ids), ids, verbose=0)
    assert int(loaded.optimizer.iterations) == 2
    np.testing.assert_allclose(loaded((ids, ids)), model((ids, ids)), rtol=1e-6, atol=1e-6)


def test_another_name_and_a_peak_of_the_paper_s_schedule_are_refused():
    with pytest.raises(ValueError, match=r"^`name` must be one of transformer, cosine, constant"):
        schedule("x", 64, 5, 1.0, None, 50)
    with pytest.raises(ValueError, match=r"learning_rate=0\.1\. Pass --schedule=constant"):
        schedule("transformer", 8, 4, 1.0, 0.1, 10)
