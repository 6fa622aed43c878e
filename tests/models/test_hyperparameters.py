"""Table 3's columns: defaults are the paper's, and an invalid field is refused by name; and the
other architectures that the Transformer is compared with.
"""

import json

import numpy as np
import pytest

from keras_transformer.flags.recipes import recipe
from keras_transformer.models import (
    ARCHITECTURES,
    ConvolutionalHyperparameters,
    ConvolutionalTranslator,
    Hyperparameters,
    RecurrentHyperparameters,
    RecurrentTranslator,
    Transformer,
    VisionHyperparameters,
    model_of,
    sizes_of_description,
    sizes_of_flags,
)
from keras_transformer.models.variants import POSITIONS
from keras_transformer.saved_models import ctranslate2_model

SIZES = (
    *("vocabulary_size", "num_layers", "d_model", "d_ff", "num_heads", "d_k", "d_v"),
    "max_positions",
)
PROBABILITIES = (
    *("dropout", "label_smoothing", "attention_dropout", "activation_dropout"),
    "token_dropout",
)
ATTENTIONS = (
    "scaled_dot_product or dot_product or additive or local:R or sparse:R or low_rank:K or linear, "
    "R and K integers of at least 1"
)
# A field, values that it cannot have, and what it must be.
WRONG = [
    *((name, (0, -2), f"an integer, at least {1 + (name == 'd_model')}") for name in SIZES),
    *((name, (-0.1, 1, 1.5), "a number from 0 to 0.99") for name in PROBABILITIES),
    *((name, (float("nan"),), "a finite number") for name in PROBABILITIES),
    *((name, ("0.1",), "a number") for name in PROBABILITIES),
    ("norm", ("between",), "one of post, pre, pre_rms"),
    ("activation", ("tanh",), "one of relu, gelu, gelu_tanh, swish, swiglu, geglu"),
    ("positions", ("t5",), f"one of {', '.join(POSITIONS)}"),
    ("attention", ("local", "local:", "local:0", "local:-1", "local:1.5"), ATTENTIONS),
    ("attention", ("softmax", "linear:3", "scaled_dot_product:"), ATTENTIONS),
    *((name, (None, ["relu"], True), "a string") for name in ("norm", "activation", "attention")),
    ("tie_embeddings", (True,), "a string"),
]


def test_defaults_are_the_paper_s_base_row():
    # Those behind label_smoothing were written by no run of 0.5.
    sizes = {"num_layers": 6, "d_model": 512, "d_ff": 2048, "num_heads": 8, "dropout": 0.1}
    sizes |= {"label_smoothing": 0.1, "norm": "post", "activation": "relu", "max_positions": 1024}
    sizes |= dict.fromkeys(["attention_dropout", "activation_dropout", "token_dropout"], 0.0)
    sizes |= {"positions": "sinusoidal", "attention": "scaled_dot_product"}
    sizes |= {"tie_embeddings": "three_way", "residual_initialization": "depth_scaled"}
    assert Hyperparameters(vocabulary_size=37000) == Hyperparameters(37000, **sizes)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [(name, value, expected) for name, values, expected in WRONG for value in values],
)
def test_a_value_that_a_field_cannot_have_is_refused_by_name(name, value, expected):
    with pytest.raises(ValueError) as raised:
        Hyperparameters(**{"vocabulary_size": 100, name: value})
    assert str(raised.value) == f"`{name}` must be {expected}. Received: {name}={value!r}."


@pytest.mark.parametrize(
    ("sizes", "remedy"),
    [
        ({"d_model": 500, "num_heads": 8}, "d_model=504"),
        ({"d_model": 512, "num_heads": 7}, "d_model=518"),
        ({"d_model": 8, "num_heads": 3}, "d_model=12"),
    ],
)
def test_heads_that_do_not_divide_d_model_are_refused_with_a_remedy_that_works(sizes, remedy):
    with pytest.raises(ValueError, match=rf"`d_model`.*`num_heads`.*Try {remedy}, or pass `d_k` "):
        Hyperparameters(100, **sizes)
    Hyperparameters(100, **{**sizes, "d_model": int(remedy.split("=")[1])})
    Hyperparameters(100, **sizes, d_k=4, d_v=4)
    with pytest.raises(ValueError, match="`d_v`"):
        Hyperparameters(100, **sizes, d_k=4)


@pytest.mark.parametrize(
    ("variants", "message"),
    [
        (
            {"positions": "relative", "attention": "linear"},
            "`positions`='relative' goes with attention=scaled_dot_product or dot_product or "
            "additive or local or sparse. Received: attention='linear'. Try positions=sinusoidal",
        ),
        (
            {"positions": "rotary", "attention": "low_rank:4"},
            "`positions`='rotary' goes with attention=scaled_dot_product or dot_product or local "
            "or sparse. Received: attention='low_rank:4'. Try positions=sinusoidal or ",
        ),
        (
            {"positions": "rotary", "d_k": 5},
            "`d_k` must be even for positions='rotary', which rotates pairs. Received: d_k=5. Try",
        ),
        (
            {"attention": "linear", "attention_dropout": 0.1},
            "`attention_dropout` must be 0 for attention='linear', which has no weights to drop.",
        ),
    ],
)
def test_fields_that_do_not_go_together_are_refused_in_one_line(variants, message):
    with pytest.raises(ValueError) as raised:
        Hyperparameters(100, **variants)
    assert str(raised.value).startswith(message)
    for name in variants:  # each alone is accepted
        Hyperparameters(100, **{name: variants[name]})


def test_hyperparameters_survive_json():
    shares = {**dict.fromkeys(PROBABILITIES, 0.2), "dropout": 0.0}
    variants = {"norm": "pre", "activation": "swiglu", "positions": "learned", "max_positions": 50}
    variants |= {"attention": "local:8", "tie_embeddings": "decoder"}
    variants["residual_initialization"] = "glorot"
    hyperparameters = Hyperparameters(100, 2, 8, 16, 2, 3, 5, **shares, **variants)
    of_numpy = {
        name: np.array(value).flat[0] if isinstance(value, bool | int | float) else value
        for name, value in hyperparameters.as_dict().items()
    }
    for equal in (hyperparameters, Hyperparameters(**of_numpy)):
        assert Hyperparameters(**json.loads(json.dumps(equal.as_dict()))) == hyperparameters
    assert Hyperparameters(100) != hyperparameters
    assert VisionHyperparameters(np.int64(32), width=np.int64(64)).tokens == 9


# The models that the Transformer is compared with: chosen in one table, padded and decoded like it,
# and refusing the fields that they do not use.
V = 11
SMALL = {
    "recurrent": RecurrentHyperparameters(V, num_layers=2, d_model=8),
    "convolutional": ConvolutionalHyperparameters(
        V, num_layers=2, d_model=8, positions="learned", max_positions=6
    ),
}
NAMES = pytest.mark.parametrize("name", list(SMALL))


def test_hyperparameters_of_another_version_are_refused():
    """For other models see tests/inference/test_line_batches.py."""
    message = r"^the model was written by another version: .* hyperparameter x, y\. Use"
    with pytest.raises(ValueError, match=message):
        VisionHyperparameters.of_description({"classes": 3, "y": 1, "x": 2})
    assert VisionHyperparameters.of_description({"classes": 3}).classes == 3


def test_a_description_must_have_the_sizes_without_a_default():
    message = r"must have vocabulary_size\. Received: some without vocab"
    with pytest.raises(ValueError, match=message):
        sizes_of_description({"num_layers": 2})
    # A control: the others have their defaults.
    assert sizes_of_description({"vocabulary_size": V}) == Hyperparameters(V)


@NAMES
def test_the_state_has_a_fixed_size(name):
    stepper = model_of(SMALL[name]).stepper()
    sizes = {tuple(tensor.shape) for layer in stepper.start(3) for tensor in _tensors(layer)}
    assert sizes == {(3, 8) if name == "recurrent" else (3, 2, 8)}
    assert {axis for layer in stepper.growing for axis in np.ravel(layer)} == {-1}


def _tensors(state):
    return state if isinstance(state, tuple) else (state,)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tiny", (Hyperparameters, Transformer, 4.97e6)),
        ("recurrent", (RecurrentHyperparameters, RecurrentTranslator, 3.52e6)),
        ("convolutional", (ConvolutionalHyperparameters, ConvolutionalTranslator, 3.40e6)),
    ],
)
def test_the_recipes_make_models_of_known_sizes(name, expected):
    hyperparameters = sizes_of_flags(recipe(f"{name}.flags"))
    translator = model_of(hyperparameters)
    assert (type(hyperparameters), type(translator)) == expected[:2]
    assert translator.count_params() == pytest.approx(expected[2], rel=0.01)


@pytest.mark.parametrize("name", list(ARCHITECTURES))
def test_an_architecture_s_name_alone_gives_its_defaults(name):
    sizes = sizes_of_flags(recipe(f"--architecture={name}"))
    assert sizes == ARCHITECTURES[name](sizes.vocabulary_size)
    assert sizes_of_description(sizes.as_dict()) == sizes


def test_a_description_without_an_architecture_is_a_transformer_s():
    written = Hyperparameters(100, d_model=8, num_heads=2).as_dict()
    del written["architecture"]
    assert sizes_of_description(written) == Hyperparameters(100, d_model=8, num_heads=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--architecture=recurrent --num_heads=4", "--num_heads is for --architecture=transformer"),
        ("--architecture=recurrent --kernel_size=5", "--kernel_size is for --architecture=convol"),
        ("--architecture=convolutional --norm=pre", "--norm is for --architecture=transformer"),
        ("--kernel_size=3", "--kernel_size is for --architecture=convolutional"),
        ("tiny.flags --architecture=recurrent", "tiny.flags, line 7: --d_ff is for --architecture"),
        ("--architecture=convolutional --kernel_size=4", "Received: kernel_size=4. Try 5."),
        ("--architecture=convolutional --positions=rotary", "must be one of sinusoidal, learned"),
        ("--d_model=9 --num_heads=1", "must be even. Received: d_model=9. Try 10."),
        ("--architecture=recurrent --d_model=7", "Received: d_model=7. Try 8."),
        ("--architecture=convolutional --d_model=7", "Received: d_model=7. Try 8."),
        ("--architecture=recurrent --dropout=-1", "dropout"),
    ],
)
def test_a_flag_that_an_architecture_does_not_use_is_refused(arguments, message):
    with pytest.raises(ValueError) as raised:
        sizes_of_flags(recipe(arguments))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "make", [sizes_of_description, lambda sizes: sizes_of_flags({**sizes, "vocabulary_size": V})]
)
def test_an_unknown_architecture_is_refused(make):
    with pytest.raises(ValueError, match=r"^`architecture` must be transformer or recurrent or "):
        make({"architecture": "quantum"})


@NAMES
def test_ctranslate2_refuses_other_architectures_in_one_line(name, tmp_path):
    pytest.importorskip("ctranslate2")
    with pytest.raises(ValueError) as raised:
        ctranslate2_model.convert(model_of(SMALL[name]), None, tmp_path / "model", {})
    assert str(raised.value) == (
        "CTranslate2 knows only transformer as `architecture`. Received: "
        f"architecture={name!r}. Export a SavedModel."
    )
