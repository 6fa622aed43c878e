"""What a family of models says of itself: what its config.json may say, and a table of its weights,
ours and theirs, from which their shapes are checked and ours are made.
"""

import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import msgspec
import numpy as np

from pipelines.json_files import Schema, quote, refuse

AGAIN = "Take the config.json that was saved with the weights, or import another model."
ANOTHER = "Import another model."
ONE_OF_SEVERAL = "single_label_classification"
MOST = 2**31 - 1
# The bias of pieces that a model lacks: as unlikely as float32 can say, and losses stay finite.
NEVER = -100.0
Size = Annotated[int, msgspec.Meta(ge=1, le=MOST)]
Natural = Annotated[int, msgspec.Meta(ge=0, le=MOST)]
Factor = Annotated[float, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(ge=0, lt=1)]
Epsilon = Annotated[float, msgspec.Meta(gt=0, le=1)]
# Notes of the packages that saved it, and what they return or how they train and compute.
NOTES = (
    *("_attn_implementation", "_name_or_path", "attn_implementation", "bos_token_id"),
    *("chunk_size_feed_forward", "dtype", "eos_token_id", "finetuning_task", "forced_bos_token_id"),
    *("gradient_checkpointing", "initializer_factor", "initializer_range", "label2id"),
    *("model_type", "output_attentions", "output_hidden_states", "output_past", "return_dict"),
    *("sep_token_id", "torch_dtype", "torchscript", "transformers_version", "use_bfloat16"),
    *("use_cache",),
)
# Our attentions of a translator's layer, by stack.
ATTENTIONS = {"encoder": ("self_attention",), "decoder": ("self_attention", "cross_attention")}
# Names of activations of BERT and ViT, and ours.
ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_tanh", "relu": "relu", "silu": "swish"}


class Config(Schema):
    """What each family's config.json may say, besides its sizes."""

    HARMLESS = NOTES
    FIXED: ClassVar = {
        "cross_attention_hidden_size": (None,),
        "preprocessor": (),
        "pruned_heads": ({},),
        "quantization_config": (None,),
        "tie_encoder_decoder": (False,),
    }

    # The class of our model.
    MODEL: ClassVar[type]

    architectures: list[str] | None = None
    id2label: dict[str, str] | None = None
    problem_type: str | None = None

    def model(self, hyperparameters: Any) -> Any:
        """A new model of some sizes, with as many labels as this names."""
        return self.MODEL(hyperparameters)

    def architecture(self, default: str) -> str:
        """The class of transformers that the model was saved from."""
        return (self.architectures or [default])[0]

    def labels(self) -> list[str]:
        """The names of a classifier's labels in the order of its logits, two if it names none."""
        names = self.id2label or {"0": "LABEL_0", "1": "LABEL_1"}
        numbers = [str(number) for number in range(len(names))]
        if gap := next((number for number in numbers if number not in names), None):
            wanted = f"numbered from 0, with {gap}"
            refuse("id2label", "config.json", wanted, self.id2label, AGAIN)
        return [names[number] for number in numbers]

    def refuse_no_choice(self, architecture: str) -> None:
        """Refuse a classifier that does not choose one among several labels."""
        problem = self.problem_type or ONE_OF_SEVERAL
        count = len(self.labels())
        if problem != ONE_OF_SEVERAL or count < 2:
            raise ValueError(
                f"a {architecture} must have problem_type={ONE_OF_SEVERAL} and at least 2 labels "
                f"in config.json, for we give each input one of them. Received: "
                f"problem_type={problem}, {count} labels. Import another model."
            )


class Weight(NamedTuple):
    """A weight of ours, by its variable's path, `made` of one of theirs, whose shape this says; or
    of None, where they have nothing like it.
    """

    ours: str
    theirs: str | None
    shape: tuple[int, ...]
    made: Callable[[np.ndarray], np.ndarray] = np.asarray


def linear(ours: str, theirs: str, outputs: int, inputs: int) -> Iterator[Weight]:
    """A map of PyTorch, (outputs, inputs), and its bias; `ours` has braces for kernel and bias."""
    yield Weight(ours.format("kernel"), f"{theirs}.weight", (outputs, inputs), np.transpose)
    yield Weight(ours.format("bias"), f"{theirs}.bias", (outputs,))


def norm(ours: str, theirs: str, width: int) -> Iterator[Weight]:
    """Gain and bias of a layer norm."""
    yield Weight(f"{ours}/gamma", f"{theirs}.weight", (width,))
    yield Weight(f"{ours}/beta", f"{theirs}.bias", (width,))


def tables(ties: str, target: tuple, source: tuple, projection: tuple, bias: tuple):
    """The tables of a translator that are not tied, and its output bias: of each their name, its
    shape and what ours is made by.
    """
    yield Weight("embedding/table", *target)
    if ties != "three_way":
        yield Weight("source_embedding/table", *source)
    if ties == "none":
        yield Weight("projection/table", *projection)
    yield Weight(f"{'projection' if ties == 'none' else 'embedding'}/output_bias", *bias)


def layers(
    depths: Iterable[int], width: int, inner: int, linear: Callable, norm: Callable
) -> Iterator[Weight]:
    """The weights of the layers of a translator. `linear` gives those of a map and `norm` those of
    a norm, by our name and their place: stack, number of the layer, sublayer, and of a map the part
    that it is and its numbers of inputs and outputs. A map's name has braces for kernel and bias.
    """
    for (stack, attentions), depth in zip(ATTENTIONS.items(), depths, strict=True):
        for number in range(depth):
            ours = f"{stack}/layer_{number}"
            for name in attentions:
                place = (stack, number, name)
                for part in ("query", "key", "value", "output"):
                    yield from linear(f"{ours}/{name}/{part}_{{}}", *place, part, width, width)
                yield from norm(f"{ours}/{name}_norm/norm", *place)
            place = (stack, number, "feed_forward")
            for part, *size in (("inner", width, inner), ("outer", inner, width)):
                yield from linear(f"{ours}/feed_forward/{part}/{{}}", *place, part, *size)
            yield from norm(f"{ours}/feed_forward_norm/norm", *place)


def require_shape(found: tuple[int, ...], shape: tuple[int, ...], weight: str, those: str) -> None:
    """Refuse a weight of another shape; `those` should belong together."""
    if found != shape:
        raise ValueError(f"{weight} is {found}, expected {shape}. Check that {those}.")


def require_finite(array: np.ndarray, weight: str, remedy: str) -> np.ndarray:
    """An array of finite numbers of float32; others are refused."""
    is_float = array.dtype == np.float32
    if not is_float or not np.isfinite(array).all():
        wrong = f"{(~np.isfinite(array)).sum():,} others" if is_float else array.dtype
        raise ValueError(
            f"{weight} must have finite numbers of float32. Received: {wrong}. {remedy}"
        )
    return array


class EncoderConfig(Config, kw_only=True):
    """What BERT and ViT say of their encoder, which has the same layers."""

    FIXED: ClassVar = {**Config.FIXED, "is_decoder": (False,), "is_encoder_decoder": (False,)}

    num_hidden_layers: Size
    hidden_size: Size
    intermediate_size: Size
    num_attention_heads: Size
    hidden_act: Literal[tuple(ACTIVATIONS)] = "gelu"
    hidden_dropout_prob: Share = 0.0
    attention_probs_dropout_prob: Share = 0.0
    layer_norm_eps: Epsilon = 1e-12

    def sizes(self) -> dict[str, Any]:
        """The encoder's hyperparameters, by our names."""
        return {
            "num_layers": self.num_hidden_layers,
            "d_model": self.hidden_size,
            "d_ff": self.intermediate_size,
            "num_heads": self.num_attention_heads,
            "dropout": self.hidden_dropout_prob,
            "attention_dropout": self.attention_probs_dropout_prob,
            "activation": ACTIVATIONS[self.hidden_act],
            "norm_epsilon": self.layer_norm_eps,
        }

    def layers(self, attention: str, norms: Mapping[str, str]) -> Iterator[Weight]:
        """The weights of the layers. `attention` is what the maps that make queries, keys and
        values are called after; `norms` names those of a layer, ours -> theirs.
        """
        width = self.hidden_size
        parts = ("query", "key", "value")
        maps = {
            **{f"self_attention/{one}_{{}}": (f"{attention}.{one}", width, width) for one in parts},
            "self_attention/output_{}": ("attention.output.dense", width, width),
            "feed_forward/inner/{}": ("intermediate.dense", self.intermediate_size, width),
            "feed_forward/outer/{}": ("output.dense", width, self.intermediate_size),
        }
        for number in range(self.num_hidden_layers):
            ours = f"encoder/layer_{number}"
            theirs = f"encoder.layer.{number}"
            for name, (their_name, *size) in maps.items():
                yield from linear(f"{ours}/{name}", f"{theirs}.{their_name}", *size)
            for name, their_name in norms.items():
                yield from norm(f"{ours}/{name}", f"{theirs}.{their_name}", width)


class ArraysByPath(Mapping):
    """Our arrays by the paths of their variables, each read when it is asked for."""

    def __init__(self, table: Iterable[Weight], tensors: Mapping[str, np.ndarray]):
        self._table = {weight.ours: weight for weight in table}
        self._tensors = tensors

    def __getitem__(self, path: str) -> np.ndarray:
        weight = self._table[path]
        return weight.made(weight.theirs and self._tensors[weight.theirs])

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)


def pieces_by_id(ids: Mapping[str, Any], path: pathlib.Path, remedy: str) -> list[str]:
    """The pieces of a vocabulary file in the order of their ids, 0, 1, 2..."""
    pieces = [None] * len(ids)
    for piece, number in ids.items():
        is_id = type(number) is int and 0 <= number < len(ids)
        if not is_id or pieces[number] is not None:
            raise ValueError(
                f"{path} must number its {len(ids):,} pieces from 0, each once. Received: "
                f"{quote(piece)}: {quote(number)}. {remedy}"
            )
        pieces[number] = piece
    return pieces
