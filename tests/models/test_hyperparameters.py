"""Table 3's columns: the paper's defaults, and each field that makes no sense refused by name."""

import json

import pytest

from keras_transformer.models import Hyperparameters
from keras_transformer.models.variants import POSITIONS

SIZES = (
    *("vocabulary_size", "num_layers", "d_model", "d_ff", "num_heads", "d_k", "d_v"),
    "max_positions",
)
PROBABILITIES = (
    *("dropout", "label_smoothing", "attention_dropout", "activation_dropout"),
    "token_dropout",
)
# The fields that runs of 0.5 know nothing of, with what the paper has.
NEW = {
    "norm": "post",
    "activation": "relu",
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
    "token_dropout": 0.0,
    "positions": "sinusoidal",
    "max_positions": 1024,
    "attention": "scaled_dot_product",
    "tie_embeddings": "three_way",
    "residual_initialization": "depth_scaled",
}


ATTENTIONS = (
    "scaled_dot_product or dot_product or additive or local:R or sparse:R or low_rank:K or linear, "
    "R and K integers of at least 1"
)


def test_defaults_are_the_paper_s_base_row():
    expected = {
        "num_layers": 6,
        "d_model": 512,
        "d_ff": 2048,
        "num_heads": 8,
        "dropout": 0.1,
        "label_smoothing": 0.1,
        **NEW,
    }
    assert expected.items() <= Hyperparameters(vocabulary_size=37000).as_dict().items()


@pytest.mark.parametrize("value", [0, -2])
@pytest.mark.parametrize("name", SIZES)
def test_a_size_below_one_is_refused_by_name(name, value):
    told = (
        rf"^`{name}` must be an integer, at least {1 + (name == 'd_model')}\. .*{name}={value}\.$"
    )
    with pytest.raises(ValueError, match=told):
        Hyperparameters(**{"vocabulary_size": 100, name: value})


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        *((value, "a number from 0 to 0.99") for value in (-0.1, 1, 1.5)),
        (float("nan"), "a finite number"),
        ("0.1", "a number"),
    ],
)
@pytest.mark.parametrize("name", PROBABILITIES)
def test_no_probability_is_refused_by_name(name, value, wanted):
    with pytest.raises(ValueError, match=rf"^`{name}` must be {wanted}\. Received: {name}="):
        Hyperparameters(100, **{name: value})


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


def test_an_odd_d_model_is_refused_with_a_remedy():
    with pytest.raises(
        ValueError, match=r"`d_model` must be even\. Received: d_model=9\. Try 10\."
    ):
        Hyperparameters(100, d_model=9, num_heads=1)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("norm", "between", "one of post, pre, pre_rms"),
        ("norm", None, "a string"),
        ("activation", "tanh", "one of relu, gelu, gelu_tanh, swish, swiglu, geglu"),
        ("activation", ["relu"], "a string"),
        ("positions", "t5", f"one of {', '.join(POSITIONS)}"),
        ("tie_embeddings", True, "a string"),
        ("attention", "softmax", ATTENTIONS),
        ("attention", "local", ATTENTIONS),
        ("attention", "local:", ATTENTIONS),
        ("attention", "local:0", ATTENTIONS),
        ("attention", "local:-1", ATTENTIONS),
        ("attention", "local:1.5", ATTENTIONS),
        ("attention", "linear:3", ATTENTIONS),
        ("attention", "scaled_dot_product:", ATTENTIONS),
        ("attention", None, "a string"),
    ],
)
def test_a_variant_that_there_is_not_is_refused_by_name(name, value, expected):
    with pytest.raises(ValueError) as raised:
        Hyperparameters(100, **{name: value})
    assert str(raised.value) == f"`{name}` must be {expected}. Received: {name}={value!r}."


@pytest.mark.parametrize(
    ("given", "told"),
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
            "`d_k` must be even for positions='rotary', which turns pairs. Received: d_k=5. Try",
        ),
        (
            {"attention": "linear", "attention_dropout": 0.1},
            "`attention_dropout` must be 0 for attention='linear', which has no weights to drop.",
        ),
    ],
)
def test_variants_that_do_not_go_together_are_refused_in_a_line(given, told):
    with pytest.raises(ValueError) as raised:
        Hyperparameters(100, **given)
    assert str(raised.value).startswith(told)
    for name in given:  # each alone is a variant that there is
        Hyperparameters(100, **{name: given[name]})


def test_what_0_5_wrote_lacks_the_variants_and_means_the_paper_s():
    written = Hyperparameters(100, d_model=8, num_heads=2).as_dict()
    old = {name: value for name, value in written.items() if name not in NEW}
    assert Hyperparameters(**old) == Hyperparameters(100, d_model=8, num_heads=2)


def test_the_way_through_json_and_back():
    shares = {**dict.fromkeys(PROBABILITIES, 0.2), "dropout": 0.0}
    variants = {"norm": "pre", "activation": "swiglu", "positions": "learned", "max_positions": 50}
    variants |= {"attention": "local:8", "tie_embeddings": "decoder"}
    variants["residual_initialization"] = "glorot"
    hyperparameters = Hyperparameters(100, 2, 8, 16, 2, 3, 5, **shares, **variants)
    assert Hyperparameters(**json.loads(json.dumps(hyperparameters.as_dict()))) == hyperparameters
    assert Hyperparameters(100) != hyperparameters
