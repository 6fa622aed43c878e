"""What the model families share: the schema of config.json, and the table that maps our weights to
theirs, by which shapes are checked and arrays are converted.
"""

import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import msgspec
import numpy as np

from pipelines.json_files import Schema, quote, refuse

OWN_CONFIG = "Take the config.json that was saved with the weights, or import another model."
ANOTHER = "Import another model."
WHOLE = "Save the model and its tokenizer again, all files."
RELEASE = "Take the whole release again."
SINGLE_LABEL = "single_label_classification"
MOST = 2**31 - 1
# Output bias of pieces that a model lacks: a probability of nearly 0, and losses stay finite.
NEVER = -100.0
Size = Annotated[int, msgspec.Meta(ge=1, le=MOST)]
Natural = Annotated[int, msgspec.Meta(ge=0, le=MOST)]
Factor = Annotated[float, msgspec.Meta(ge=0, le=MOST)]
Share = Annotated[float, msgspec.Meta(ge=0, lt=1)]
Epsilon = Annotated[float, msgspec.Meta(gt=0, le=1)]
# Keys without effect on our model: notes of packages, and how they train, compute and answer.
NOTES = (
    *("_attn_implementation", "_name_or_path", "attn_implementation", "bos_token_id"),
    *("chunk_size_feed_forward", "dtype", "eos_token_id", "finetuning_task", "forced_bos_token_id"),
    *("gradient_checkpointing", "initializer_factor", "initializer_range", "label2id"),
    *("model_type", "output_attentions", "output_hidden_states", "output_past", "return_dict"),
    *("sep_token_id", "torch_dtype", "torchscript", "transformers_version", "use_bfloat16"),
    *("use_cache",),
)
# Attentions in a layer of a translator, by stack; our names.
ATTENTIONS = {"encoder": ("self_attention",), "decoder": ("self_attention", "cross_attention")}
# Activations of BERT and ViT -> ours.
ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_tanh", "relu": "relu", "silu": "swish"}


class Config(Schema):
    """Keys of config.json that all families share."""

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
        """Return a new model of ours with these hyperparameters."""
        return self.MODEL(hyperparameters)

    def architecture(self, default: str) -> str:
        """Return the name of the transformers class that saved the model."""
        return (self.architectures or [default])[0]

    def labels(self) -> list[str]:
        """Return a classifier's labels in the order of its logits; two if it names none."""
        names = self.id2label or {"0": "LABEL_0", "1": "LABEL_1"}
        numbers = [str(number) for number in range(len(names))]
        if gap := next((number for number in numbers if number not in names), None):
            expected = f"numbered from 0, with {gap}"
            refuse("id2label", "config.json", expected, self.id2label, OWN_CONFIG)
        return [names[number] for number in numbers]

    def require_single_label(self, architecture: str) -> None:
        """Refuse a classifier that does not choose exactly one of several labels."""
        problem = self.problem_type or SINGLE_LABEL
        count = len(self.labels())
        if problem != SINGLE_LABEL or count < 2:
            raise ValueError(
                f"a {architecture} must have problem_type={SINGLE_LABEL} and at least 2 labels "
                f"in config.json, because each input gets exactly one of them. Received: "
                f"problem_type={problem}, {count} labels. Import another model."
            )


class Weight(NamedTuple):
    """A weight of our model: the path of its variable, the name and shape of the array that it is
    converted from, and how. The name is None if their model has no such weight.
    """

    ours: str
    theirs: str | None
    shape: tuple[int, ...]
    convert: Callable[[np.ndarray], np.ndarray] = np.asarray


def linear(ours: str, theirs: str, outputs: int, inputs: int) -> Iterator[Weight]:
    """Yield PyTorch's linear map (outputs, inputs) and its bias; `ours` has braces for both."""
    yield Weight(ours.format("kernel"), f"{theirs}.weight", (outputs, inputs), np.transpose)
    yield Weight(ours.format("bias"), f"{theirs}.bias", (outputs,))


def norm(ours: str, theirs: str, width: int) -> Iterator[Weight]:
    """Yield gain and bias of a layer norm."""
    yield Weight(f"{ours}/gamma", f"{theirs}.weight", (width,))
    yield Weight(f"{ours}/beta", f"{theirs}.bias", (width,))


def tables(ties: str, target: tuple, source: tuple, projection: tuple, bias: tuple):
    """Yield a translator's tables, tied ones once, and its output bias. Each argument is a tuple of
    their name, the shape and the conversion.
    """
    yield Weight("embedding/table", *target)
    if ties != "three_way":
        yield Weight("source_embedding/table", *source)
    if ties == "none":
        yield Weight("projection/table", *projection)
    yield Weight(f"{'projection' if ties == 'none' else 'embedding'}/output_bias", *bias)


def layers(
    depths: Iterable[int], width: int, inner: int, of_map: Callable, of_norm: Callable
) -> Iterator[Weight]:
    """Yield the weights of a translator's layers. `of_map` returns those of a linear map, `of_norm`
    those of a norm. Both get our name, stack, layer number and sublayer; `of_map` also the part
    and the numbers of inputs and outputs, and its name has braces for kernel and bias.
    """
    for (stack, attentions), depth in zip(ATTENTIONS.items(), depths, strict=True):
        for number in range(depth):
            ours = f"{stack}/layer_{number}"
            for name in attentions:
                place = (stack, number, name)
                for part in ("query", "key", "value", "output"):
                    yield from of_map(f"{ours}/{name}/{part}_{{}}", *place, part, width, width)
                yield from of_norm(f"{ours}/{name}_norm/norm", *place)
            place = (stack, number, "feed_forward")
            for part, *size in (("inner", width, inner), ("outer", inner, width)):
                yield from of_map(f"{ours}/feed_forward/{part}/{{}}", *place, part, *size)
            yield from of_norm(f"{ours}/feed_forward_norm/norm", *place)


def require_shape(shape: tuple[int, ...], expected: tuple[int, ...], weight: str, check: str):
    """Refuse a weight of another shape than expected, and say what to check."""
    if shape != expected:
        raise ValueError(f"{weight} is {shape}, expected {expected}. Check that {check}.")


def require_finite(array: np.ndarray, weight: str, remedy: str) -> np.ndarray:
    """Return the array; refuse one that is not float32 or not finite."""
    is_float = array.dtype == np.float32
    if not is_float or not np.isfinite(array).all():
        received = f"{(~np.isfinite(array)).sum():,} others" if is_float else array.dtype
        raise ValueError(
            f"{weight} must have finite numbers of float32. Received: {received}. {remedy}"
        )
    return array


class EncoderConfig(Config, kw_only=True):
    """Keys of config.json for an encoder whose layers BERT and ViT share."""

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
        """Return the encoder's hyperparameters by our names."""
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

    def layers(self, attention: str, *norms: str) -> Iterator[Weight]:
        """Yield the weights of the layers. `attention` is the prefix of the maps to queries, keys
        and values; `norms` are those of a layer: of its attention and of its feed-forward network.
        """
        d = self.hidden_size
        parts = ("query", "key", "value")
        maps = {
            **{f"self_attention/{part}_{{}}": (f"{attention}.{part}", d, d) for part in parts},
            "self_attention/output_{}": ("attention.output.dense", d, d),
            "feed_forward/inner/{}": ("intermediate.dense", self.intermediate_size, d),
            "feed_forward/outer/{}": ("output.dense", d, self.intermediate_size),
        }
        for number in range(self.num_hidden_layers):
            ours = f"encoder/layer_{number}"
            theirs = f"encoder.layer.{number}"
            for name, (their_name, *size) in maps.items():
                yield from linear(f"{ours}/{name}", f"{theirs}.{their_name}", *size)
            for name, their_name in zip(("self_attention", "feed_forward"), norms, strict=True):
                yield from norm(f"{ours}/{name}_norm/norm", f"{theirs}.{their_name}", d)


class ArraysByPath(Mapping):
    """Our arrays by the paths of their variables; each is read and converted on access."""

    def __init__(self, table: Iterable[Weight], tensors: Mapping[str, np.ndarray]):
        self._table = {weight.ours: weight for weight in table}
        self._tensors = tensors

    def __getitem__(self, path: str) -> np.ndarray:
        weight = self._table[path]
        return weight.convert(weight.theirs and self._tensors[weight.theirs])

    def __contains__(self, path: object) -> bool:
        return path in self._table  # `Mapping` would read and convert the array.

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)


def pieces_by_id(ids: Mapping[str, Any], path: pathlib.Path, remedy: str) -> list[str]:
    """Return the pieces of a vocabulary file by their ids, which must be 0, 1, 2..."""
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
