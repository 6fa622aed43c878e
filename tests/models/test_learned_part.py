"""Which weights learn: frozen ones have no slots and stay; adapters are W + alpha / r A B."""

import keras
import numpy as np
import pytest

from keras_transformer.models import Transformer
from keras_transformer.models.learned_part import choose_learned, parameters_in_words
from keras_transformer.training import checkpoint, fit
from keras_transformer.training.checkpoint import LOW_RANK
from keras_transformer.training.loss import LabelSmoothedCrossEntropy
from keras_transformer.training.optimizer import averaged_weights, optimizer

SOURCE = np.array([[4, 5, 6, 3], [7, 3, 0, 0]])
TARGET = np.array([[2, 8, 9], [2, 4, 0]])
NOTHING = {"freeze": (), "lora_rank": 0, "lora_on": ("query", "value"), "lora_alpha": None}
EVERY = ("query", "key", "value", "output", "inner", "outer", "linear")


def transformer(**sizes):
    keras.utils.set_random_seed(1)
    small = {"num_layers": 1, "d_model": 8, "d_ff": 12, "num_heads": 2, "dropout": 0.0}
    return Transformer(vocabulary_size=20, **{**small, **sizes})


def chosen(model=None, **values):
    model = model or transformer()
    choose_learned(model, {**NOTHING, **values}, LOW_RANK)
    return model


def arrays(model):
    return {weight.path: np.array(np.asarray(weight)) for weight in model.weights}


def updated(model):
    """The names of the weights that two updates change, and the number of Adam's slots. The first
    changes only one of an adapter's two, as the other is 0.
    """
    before = arrays(model)
    fit.compile_model(model, optimizer(0.01), LabelSmoothedCrossEntropy(0.1))
    model.run_eagerly = True  # two updates; a graph would take longer to make
    for _ in range(2):
        model.train_on_batch([SOURCE, TARGET], TARGET)
    changed = {name for name, array in arrays(model).items() if (array != before[name]).any()}
    return changed, len(model.optimizer.variables)


@pytest.mark.parametrize(
    ("patterns", "is_frozen"),
    [
        (["encoder"], lambda path: path.startswith("encoder/")),
        (["encoder", "embedding"], lambda path: not path.startswith("decoder/")),
        (["*/cross_attention"], lambda path: "/cross_attention/" in path),
        (["*_norm"], lambda path: "_norm/" in path),
        (["decoder/layer_[0-9]/feed_forward/inner/kernel"], lambda path: "r/inner/k" in path),
        # A control.
        ([], lambda path: False),
    ],
)
def test_frozen_weights_stay_and_have_no_slots(patterns, is_frozen):
    if "decoder/layer_[0-9]/feed_forward/inner/kernel" in patterns:
        is_frozen = "decoder/layer_0/feed_forward/inner/kernel".__eq__
    model = chosen(freeze=patterns)
    changed, slots = updated(model)
    assert changed == {path for path in arrays(model) if not is_frozen(path)}
    # Adam has two slots a weight, one for the steps and one for the rate.
    assert slots == 2 * len(changed) + 2


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"freeze": ["encoder", "embeding"]},
            r"--freeze=embeding is no layer or weight .* It has embedding, .*encoder/layer_0, ",
        ),
        ({"freeze": ["encoder", "*"]}, r"--freeze=encoder,\* leaves nothing to learn"),
        (
            {"lora_rank": 2, "lora_on": ["query", "quer"]},
            r"--lora_on=quer is no matrix .* It has outer, inner, query, key, value, output\. ",
        ),
    ],
)
def test_an_impossible_choice_of_weights_is_refused_by_name(values, message):
    with pytest.raises(ValueError, match=message):
        chosen(**values)


@pytest.mark.parametrize("activation", ["relu", "swiglu"])
def test_an_adapter_adds_a_product_to_a_kernel_and_nothing_at_first(activation):
    base = transformer(activation=activation, attention_bias=True)
    plain = np.array(base([SOURCE, TARGET]))
    on = EVERY if activation == "swiglu" else EVERY[:-1]
    model = chosen(
        transformer(activation=activation, attention_bias=True),
        lora_rank=2,
        lora_on=on,
        lora_alpha=6.0,
    )
    np.testing.assert_array_equal(model([SOURCE, TARGET]), plain)

    rng = np.random.default_rng(3)
    expected = arrays(base)
    adapted = arrays(model)
    for variable in model.trainable_variables:
        variable.assign(rng.normal(size=variable.shape) * 0.3)
    weights = arrays(model)
    for name in expected:
        if f"{name}_lora_a" in adapted:
            a, b = (weights[f"{name}_lora_{end}"].astype(np.float64) for end in "ab")
            expected[name] = expected[name] + 6.0 / 2 * a @ b
    kernels = {name for name in expected if name.endswith("kernel")}
    assert {name for name in expected if f"{name}_lora_a" in adapted} == kernels
    base.set_weights([expected[weight.path] for weight in base.weights])
    logits = np.array(model([SOURCE, TARGET]))
    np.testing.assert_allclose(logits, base([SOURCE, TARGET]), atol=2e-5)
    assert np.abs(logits - plain).max() > 0.1
    # Decoding uses the same sum.
    np.testing.assert_allclose(first_step(model), first_step(base), atol=2e-5)
    # Files have it too: `merged` gives it the name of the base's kernel.
    files = checkpoint.merged(averaged_weights_of(model))
    assert [*files] == [f"weights/{weight.path}" for weight in base.weights]
    for name, array in files.items():
        np.testing.assert_allclose(array, expected[name.removeprefix("weights/")], atol=1e-6)


def first_step(model):
    stepper = model.stepper()
    logits, *_ = stepper(np.array([[2], [2]]), 0, stepper.start(2), model.encode(SOURCE))
    return np.array(logits)


def averaged_weights_of(model):
    fit.compile_model(model, optimizer(0.01), LabelSmoothedCrossEntropy(0.1))
    return averaged_weights(model)


def test_only_the_adapters_of_the_chosen_matrices_learn():
    model = chosen(lora_rank=2, lora_on=["decoder/*/query", "encoder/*/outer"])
    assert parameters_in_words(model).endswith(" parameters, 104 of them learn")
    changed, slots = updated(model)
    places = (
        "decoder/layer_0/self_attention/query_kernel",
        "decoder/layer_0/cross_attention/query_kernel",
        "encoder/layer_0/feed_forward/outer/kernel",
    )
    assert changed == {f"{place}{end}" for place in places for end in ("_lora_a", "_lora_b")}
    assert slots == 2 * len(changed) + 2
    assert parameters_in_words(transformer()).endswith(" parameters")


def test_weights_that_the_initial_model_lacks_learn_beside_the_adapters():
    model = transformer()
    wide = {**NOTHING, "lora_rank": 2, "lora_on": ["*"]}
    choose_learned(model, wide, LOW_RANK, ["encoder", "embedding"])
    learned = {variable.path for variable in model.trainable_variables}
    bases = {path for path in learned if not path.endswith(LOW_RANK)}
    assert bases == {path for path in arrays(transformer()) if path.startswith("decoder/")}
    # Their own matrices have no adapters, which no other run could use.
    assert {path.partition("/")[0] for path in learned - bases} == {"encoder"}
