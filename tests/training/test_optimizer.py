"""Adam, Muon and Adafactor, decoupled decay, clipping and moving averages: against torch and NumPy,
over a run that stops and goes on. Their learning rates: equation 3, the cosine, the constant one.
"""

import functools
import math
import re

import keras
import numpy as np
import pytest
from oracles import paper
from small_model import small_model, transformer

from keras_transformer.models import Transformer
from keras_transformer.training import checkpoint
from keras_transformer.training.loss import LabelSmoothedCrossEntropy
from keras_transformer.training.optimizer import (
    NOT_FOR_MUON,
    TransformerSchedule,
    averaged_weights,
    constant_schedule,
    cosine_schedule,
    optimizer,
    schedule,
)

# The optimizers with weight decay.
NAMES = ["adamw", "muon", "adafactor"]
ADAM_AND_SLOW_OTHERS = [
    "adamw",
    *(pytest.param(name, marks=pytest.mark.slow) for name in NAMES[1:]),
]
STEPS = 10
SHAPES = [(4, 3), (3,), (3, 2)]
# Their global norms are about 5, with one step far below the clipping and one step of zeros.
GRADIENTS = [
    [np.random.default_rng((step, n)).normal(size=shape) for n, shape in enumerate(SHAPES)]
    for step in range(STEPS)
]
GRADIENTS[3] = [gradient * 0.01 for gradient in GRADIENTS[3]]
GRADIENTS[6] = [gradient * 0 for gradient in GRADIENTS[6]]
START = [np.random.default_rng(n).normal(size=shape) for n, shape in enumerate(SHAPES)]


def array_of(variable):
    return np.array(np.asarray(keras.ops.stop_gradient(variable)))


def trajectory(keras_optimizer):
    """The weights after each of ten updates with the given gradients."""
    variables = [
        keras.Variable(array, dtype="float32", name=f"weight_{n}") for n, array in enumerate(START)
    ]
    weights = []
    for gradients in GRADIENTS:
        keras_optimizer.apply(
            [keras.ops.convert_to_tensor(gradient, "float32") for gradient in gradients], variables
        )
        weights.append([array_of(variable) for variable in variables])
    return weights


def torch_trajectory(name, weight_decay, clip_norm):
    """The same by torch, in float64; vectors are not decayed."""
    torch = pytest.importorskip("torch")
    kind, settings = {
        "adam": (torch.optim.Adam, {"betas": (0.9, 0.98), "eps": 1e-9}),
        "adamw": (torch.optim.AdamW, {"betas": (0.9, 0.98), "eps": 1e-9}),
        "adafactor": (torch.optim.Adafactor, {"eps": (1e-15, 1e-3)}),
    }[name]
    variables = [torch.nn.Parameter(torch.tensor(array)) for array in START]
    groups = [
        {"params": [variable], "weight_decay": weight_decay if variable.ndim > 1 else 0.0}
        for variable in variables
    ]
    torch_optimizer = kind(groups, lr=0.01, **settings)
    weights = []
    for gradients in GRADIENTS:
        for variable, gradient in zip(variables, gradients, strict=True):
            variable.grad = torch.tensor(gradient)
        if clip_norm:
            torch.nn.utils.clip_grad_norm_(variables, clip_norm)
        torch_optimizer.step()
        weights.append([variable.detach().numpy().copy() for variable in variables])
    return weights


def orthogonal(matrix):
    """Five steps of Newton and Schulz (Jordan et al. 2024), in float64."""
    wide = matrix if len(matrix) <= matrix.shape[1] else matrix.T
    wide = wide / (np.linalg.norm(wide) + 1e-7)
    for _ in range(5):
        square = wide @ wide.T
        wide = 3.4445 * wide + (-4.7750 * square + 2.0315 * square @ square) @ wide
    return wide if len(matrix) <= matrix.shape[1] else wide.T


def muon_trajectory(weight_decay, clip_norm):
    """The same by Muon in NumPy; vectors by Adam."""
    weights = [array.copy() for array in START]
    firsts = [0 * array for array in START]
    seconds = [0 * array for array in START]
    after = []
    for step, gradients in enumerate(GRADIENTS, 1):
        norm = math.sqrt(sum((gradient**2).sum() for gradient in gradients))
        scale = min(1, clip_norm / norm) if clip_norm and norm else 1
        for n, gradient in enumerate(scale * gradient for gradient in gradients):
            if gradient.ndim == 2:
                firsts[n] = 0.95 * firsts[n] + gradient
                update = orthogonal(gradient + 0.95 * firsts[n])
                update *= 0.2 * math.sqrt(max(gradient.shape))
                weights[n] *= 1 - 0.01 * weight_decay
            else:
                firsts[n] = 0.9 * firsts[n] + 0.1 * gradient
                seconds[n] = 0.98 * seconds[n] + 0.02 * gradient**2
                first = firsts[n] / (1 - 0.9**step)
                update = first / (np.sqrt(seconds[n] / (1 - 0.98**step)) + 1e-9)
            weights[n] = weights[n] - 0.01 * update
        after.append([array.copy() for array in weights])
    return after


def largest_difference(actual, expected):
    return max(
        np.abs(a - b).max()
        for x, y in zip(actual, expected, strict=True)
        for a, b in zip(x, y, strict=True)
    )


SETTINGS = [
    ("adam", 0.0, None),
    ("adam", 0.0, 0.5),
    ("adamw", 0.1, None),
    ("adamw", 0.1, 0.5),
    # Torch takes the length of Adafactor's update before the decay, Keras after it.
    ("adafactor", 0.0, None),
    ("adafactor", 0.0, 0.5),
]


@pytest.mark.parametrize(("name", "weight_decay", "clip_norm"), SETTINGS)
def test_ten_updates_are_those_of_torch(name, weight_decay, clip_norm):
    expected = torch_trajectory(name, weight_decay, clip_norm)
    actual = trajectory(optimizer(0.01, name, weight_decay, clip_norm))
    assert largest_difference(actual, expected) < 1e-6


@pytest.mark.parametrize(("weight_decay", "clip_norm"), [(0.0, None), (0.1, 0.5)])
def test_ten_updates_of_muon_are_those_of_numpy(weight_decay, clip_norm):
    expected = muon_trajectory(weight_decay, clip_norm)
    actual = trajectory(optimizer(0.01, "muon", weight_decay, clip_norm))
    assert largest_difference(actual, expected) < 1e-5
    assert largest_difference(trajectory(optimizer(0.01)), expected) > 1e-3


@pytest.mark.parametrize(
    "variant",
    [
        {},
        {"tie_embeddings": "none", "positions": "shaw"},
        pytest.param({"positions": "relative"}, marks=pytest.mark.slow),
        pytest.param({"positions": "learned", "attention": "additive"}, marks=pytest.mark.slow),
    ],
)
def test_muon_updates_the_kernels_and_nothing_else(variant):
    """Only the weights that Adam updates have a second moment."""
    sizes = {"num_layers": 1, "d_model": 8, "d_ff": 16, "num_heads": 2}
    variables = Transformer(vocabulary_size=20, **sizes, **variant).trainable_variables
    muon = optimizer(0.01, "muon")
    muon.build(variables)
    moments = zip(variables, muon.adam_velocities, strict=True)
    of_muon = {variable.path.rpartition("/")[2] for variable, moment in moments if moment is None}
    kernels = {"query_kernel", "key_kernel", "value_kernel", "output_kernel", "kernel"}
    assert of_muon == kernels


def test_the_average_starts_from_the_weights_after_the_first_update():
    adam = optimizer(0.01, ema=0.9)
    weights = trajectory(adam)
    average = [array.astype(np.float64) for array in weights[0]]
    for later in weights[1:]:
        average = [0.9 * mean + 0.1 * array for mean, array in zip(average, later, strict=True)]
    for slot, expected in zip(adam._model_variables_moving_average, average, strict=True):
        np.testing.assert_allclose(array_of(slot), expected, rtol=1e-6, atol=1e-6)


def model_in_training(seed=0, eagerly=True, body=small_model, **settings):
    keras.utils.set_random_seed(seed)
    model = body(dropout=0.5)
    loss = LabelSmoothedCrossEntropy(0.1)
    model.compile(optimizer(0.01, **settings), loss, run_eagerly=eagerly, jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    return model


IDS = np.random.default_rng(0).integers(4, 12, (3, 4, 5), dtype=np.int32)


def fit(model, epochs):
    model.fit((IDS[0], IDS[1]), IDS[2], batch_size=2, epochs=epochs, shuffle=False, verbose=0)


def weights_of(model):
    return {f"weights/{variable.path}": array_of(variable) for variable in model.weights}


def same(left, right):
    return list(left) == list(right) and all(
        np.array_equal(left[name], right[name]) for name in left
    )


@pytest.mark.parametrize("name", ADAM_AND_SLOW_OTHERS)
def test_decay_spares_biases_and_the_gains_of_normalization_alone(name):
    """Without gradients an update is the decay."""
    model = model_in_training(name=name, weight_decay=0.5, body=transformer)
    for weight in model.weights:
        weight.assign(np.ones(weight.shape))
    model.optimizer.apply([keras.ops.zeros(weight.shape) for weight in model.trainable_variables])
    for path, array in weights_of(model).items():
        spared = path.rpartition("/")[2] in ("bias", "gamma", "beta")
        np.testing.assert_allclose(array, 1 if spared else 1 - 0.01 * 0.5, rtol=0, atol=1e-7)


def test_fit_leaves_the_weights_as_they_were_trained():
    averaged, plain = model_in_training(ema=0.9), model_in_training()
    for model in (averaged, plain):
        fit(model, 2)
        fit(model, 1)
    assert same(weights_of(averaged), weights_of(plain))
    assert not same(averaged_weights(averaged), weights_of(averaged))


@pytest.mark.parametrize("name", ADAM_AND_SLOW_OTHERS)
def test_compiled_updates_equal_eager_ones(name):
    settings = {"name": name, "weight_decay": 0.1, "clip_norm": 0.5, "ema": 0.9}
    eager, compiled = model_in_training(**settings), model_in_training(eagerly=False, **settings)
    for each in (eager, compiled):
        fit(each, 2)
    for arrays_of in (weights_of, averaged_weights):
        for name, array in arrays_of(eager).items():
            np.testing.assert_allclose(arrays_of(compiled)[name], array, rtol=0, atol=1e-5)


def test_the_averages_have_the_names_and_the_order_of_the_weights():
    model, restored = model_in_training(ema=0.5), model_in_training(seed=1)
    model.train_on_batch((IDS[0], IDS[1]), IDS[2])
    # After the first update each average is its weight.
    assert same(averaged_weights(model), weights_of(model))
    fit(model, 1)
    first = averaged_weights(model)
    fit(model, 1)
    second, trained = averaged_weights(model), weights_of(model)
    assert list(second) == list(trained)
    assert not any(np.array_equal(first[name], second[name]) for name in first)
    restored.set_weights(list(second.values()))
    assert same(weights_of(restored), second)


@pytest.mark.parametrize("settings", [{}, {"ema": 0.9}])
def test_before_the_first_update_or_without_averages_they_are_the_weights(settings):
    model = model_in_training(**settings)
    assert same(averaged_weights(model), weights_of(model))
    if not settings:
        fit(model, 1)
        assert same(averaged_weights(model), weights_of(model))


@pytest.mark.parametrize("name", NAMES)
def test_a_restored_run_ends_with_the_same_weights_and_averages_to_the_last_bit(name, tmp_path):
    settings = {"name": name, "weight_decay": 0.1, "clip_norm": 0.5, "ema": 0.9}
    path = tmp_path / "step-000000002.npz"
    model = model_in_training(**settings)
    fit(model, 1)
    checkpoint.save(path, model, {"step": 2, "seconds": 1.0})
    fit(model, 1)
    restored = model_in_training(seed=1, **settings)
    checkpoint.restore(path, restored)
    fit(restored, 1)
    assert same(weights_of(restored), weights_of(model))
    assert same(averaged_weights(restored), averaged_weights(model))


def test_adam_has_the_constants_of_the_paper():
    adam = optimizer(TransformerSchedule(8, 5))
    assert (adam.beta_1, adam.beta_2, adam.epsilon) == (0.9, 0.98, 1e-9)
    muon = optimizer(TransformerSchedule(8, 5), "muon", 0.1)
    assert (muon.adam_beta_1, muon.adam_beta_2, muon.epsilon) == (0.9, 0.98, 1e-9)
    assert muon.adam_weight_decay == muon.weight_decay == 0.1


@pytest.mark.parametrize("name", NAMES)
def test_the_config_of_an_optimizer_makes_an_equal_one(name):
    original = optimizer(TransformerSchedule(8, 5), name, 0.1, 2.0, 0.99)
    clone = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(original))
    assert (type(clone), clone.get_config()) == (type(original), original.get_config())
    settings = (clone.weight_decay, clone.global_clipnorm, clone.use_ema, clone.ema_momentum)
    assert (*settings, clone.ema_overwrite_frequency) == (0.1, 2.0, True, 0.99, None)


@pytest.mark.parametrize("path", ["labels/kernel", "classes/kernel", "heads/key_projection"])
def test_muon_leaves_the_last_projection_and_tables_of_positions_to_adam(path):
    assert any(re.search(pattern, path) for pattern in NOT_FOR_MUON)
    assert not any(re.search(pattern, "layer/feed_forward/kernel") for pattern in NOT_FOR_MUON)


# Section 5.3: equation 3 at every kind of step, and its way into a saved model; the cosine and the
# constant rate beside it.
@pytest.mark.parametrize(
    ("d_model", "warmup_steps", "scale"),
    [(512, 4000, 1.0), (1024, 4000, 2.5), (64, 10, 1.0), (256, 1, 0.5)],
)
def test_the_rate_is_equation_3_times_its_scale(d_model, warmup_steps, scale):
    schedule = TransformerSchedule(d_model, warmup_steps, scale)
    steps = [*range(1, 200), 3998, 3999, 4000, 4001, 4002, 10_000, 100_000, 300_000]
    actual = [float(schedule(step - 1)) for step in steps]  # Keras counts the updates already made
    expected = [scale * paper.learning_rate(step, d_model, warmup_steps) for step in steps]
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=0)


def cosine(step, peak, warmup_steps, total_steps):
    """SGDR's equation 5 (Loshchilov and Hutter 2016) behind a linear warm-up: eta_min + (eta_max -
    eta_min) (1 + cos(pi T / T_i)) / 2.
    """
    if step <= warmup_steps:
        return peak * step / warmup_steps
    share_done = min((step - warmup_steps) / (total_steps - warmup_steps), 1.0)
    return peak * (1 + math.cos(math.pi * share_done)) / 2


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
    # Keras' float32 has no digits left where 1 + cos(pi share_done) is below 1e-7: at the very end.
    expected = [cosine(step, *arguments) for step in steps]
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-7 * arguments[0])


def test_the_constant_rate_rises_and_stays():
    rates = [float(constant_schedule(0.3, 4)(updates)) for updates in range(7)]
    expected = [0.3 * min(step / 4, 1.0) for step in range(1, 8)]
    np.testing.assert_allclose(rates, expected, rtol=1e-6, atol=0)
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
    rates = [float(clone(updates)) for updates in range(12)]
    assert rates == [float(schedule(updates)) for updates in range(12)]


@pytest.mark.parametrize("name", ["cosine", "constant"])
@pytest.mark.parametrize("peak", [None, 0.02])
def test_the_peak_of_a_run_is_its_rate_or_the_paper_s(name, peak):
    rates = [float(schedule(name, 64, 5, 2.0, peak, 50)(updates)) for updates in range(50)]
    expected = peak or 2.0 * (64 * 5) ** -0.5
    assert max(rates) == pytest.approx(expected, rel=1e-6)
    assert np.argmax(rates) == 4
    assert rates[-1] == pytest.approx(expected if name == "constant" else 0.0, abs=1e-7)


def test_the_schedule_of_the_paper_is_made_with_its_scale():
    chosen = schedule("transformer", 64, 5, 2.0, None, 50)
    assert chosen.get_config() == TransformerSchedule(64, 5, 2.0).get_config()


# Keras 3.15 hands TensorFlow's variables to NumPy 2.4 as they are.
@pytest.mark.filterwarnings(
    "ignore:__array__ implementation doesn't accept a copy keyword:DeprecationWarning"
)
def test_a_trained_model_with_the_schedule_saves_and_goes_on_after_loading(tmp_path):
    ids = np.full((2, 3), 4)
    sizes = {"num_layers": 1, "d_model": 8, "d_ff": 8, "num_heads": 2}
    model = Transformer(vocabulary_size=7, dropout=0.0, **sizes)
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


TRANSFORMER = functools.partial(TransformerSchedule, d_model=512)
OPTIMIZER = functools.partial(optimizer, 1e-3)
OF_A_RUN = functools.partial(
    schedule, d_model=64, warmup_steps=5, scale=1.0, peak=None, total_steps=5
)
# What is made, its arguments, and the error.
REFUSED = [
    (OPTIMIZER, {"name": "sgd"}, r"`name` must be one of adam, adamw, muon, .*name='sgd'\."),
    (OPTIMIZER, {"weight_decay": 0.1}, r"`weight_decay` needs adamw, .*optimizer='adam'\. Pass -"),
    (OPTIMIZER, {"name": "adamw"}, r"`weight_decay` must be positive with.*or --optimizer=adam\."),
    (OPTIMIZER, {"name": "adamw", "weight_decay": -0.5}, r"`weight_decay` must be pos.*=-0\.5\."),
    *(
        (OPTIMIZER, {"name": "muon", name: wrong}, rf"`weight_.*, `clip_norm`.* {name}={wrong}")
        for name in ("weight_decay", "clip_norm", "ema")
        for wrong in (-1.0, float("nan"))
    ),
    (OPTIMIZER, {"clip_norm": 0.0}, r".* clip_norm=0\.0"),
    (OPTIMIZER, {"ema": 1.5}, r".* ema=1\.5"),
    *(
        (TRANSFORMER, {name: wrong}, rf"`{name}` must be a positive number\. .*={wrong!r}\.")
        for name in ("d_model", "warmup_steps", "scale")
        for wrong in (0, -1, "8", None)
    ),
    (OF_A_RUN, {"name": "x"}, "`name` must be one of transformer, cosine, constant"),
    (OF_A_RUN, {"name": "transformer", "peak": 0.1}, r".*=0\.1\. Pass --schedule=constant"),
    (OF_A_RUN, {"name": "cosine"}, r".*needs --max_steps above --warmup_steps=5\. .*steps=5\."),
]


@pytest.mark.parametrize(("make", "arguments", "message"), REFUSED)
def test_arguments_that_make_no_sense_are_refused(make, arguments, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        make(**arguments)
