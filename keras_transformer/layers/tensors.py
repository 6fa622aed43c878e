"""What section 3's layers pass to one another (Vaswani et al. 2017): arrays of whichever backend
Keras runs on, and masks (section 3.2.3).

A mask is boolean and broadcastable to (B, T, S): True where query t may attend to key s.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from keras import ops

from pipelines.special_ids import PAD

# Keras has no common type for the tensors of TensorFlow, JAX and torch. Shapes are in docstrings.
Tensor = Any
# Any nest of tensors that have the same number of rows.
State = Any
# The cached keys and values of the positions that may be attended to.
KeysAndValues = tuple[Tensor, Tensor]
# What stands inside an Add & Norm: x -> (y, by-product). The by-product is None, attention weights
# or the new state of a stepper.
Sublayer = Callable[[Tensor], tuple[Tensor, Any]]


def padding_mask(ids: Tensor) -> Tensor:
    """True at the keys that are tokens, False at padding: booleans (B, 1, S), of ids (B, S)."""
    return ops.not_equal(ids, PAD)[:, None, :]


def causal_mask(length: int | Tensor) -> Tensor:
    """True where the key does not come after the query, booleans (1, T, T), lower triangular:
    "prevent positions from attending to subsequent positions". The length may be a tensor.
    """
    if length is None:
        raise ValueError(
            "`length` must be an integer or a tensor. Received: None, the length of a Keras input "
            "without one. Give the input a length, or use a `Decoder`, which makes its own mask."
        )
    positions = ops.arange(length)
    return (positions[:, None] >= positions[None, :])[None]


class Masks(NamedTuple):
    """Which keys each query may attend to: those that both masks allow.

    Attributes:
        attention: booleans broadcastable to (B, T, S); None: all.
        causal: `causal_mask(T)` where no query may attend to a later key (then S = T); None: all.
            It is separate because some attentions need it alone.
    """

    attention: Tensor | None = None
    causal: Tensor | None = None

    def checked(self, query: Tensor, key: Tensor, value: Tensor) -> "Masks":
        """Return the masks as booleans with three axes. Refuse masks that do not broadcast to the
        inputs' (B, T, S) or are of floats, and inputs that are not (B, T, d), (B, S, d), (B, S, d).
        """
        shapes = [tuple(x.shape) for x in (query, key, value)]
        batches, lengths = ({shape[n : n + 1] for shape in shapes[n:]} - {(None,)} for n in (0, 1))
        if {*map(len, shapes)} != {3} or len(batches) > 1 or len(lengths) > 1:
            raise ValueError(
                "`query`, `key` and `value` must be (B, T, d), (B, S, d) and (B, S, d); in a "
                f"decoder, key and value are the memory. Received: {', '.join(map(str, shapes))}. "
                "If all rows share a memory, repeat it: keras.ops.repeat(memory, B, axis=0)."
            )
        sizes = (*shapes[0][:2], shapes[1][1])
        masks = [mask if mask is None else ops.convert_to_tensor(mask) for mask in self]
        remedies = ("If it is of tokens, pass mask[:, None].", "Pass causal_mask(T), or no memory.")
        for name, mask, remedy in zip(("attention_mask", "causal"), masks, remedies, strict=True):
            if "float" in str(getattr(mask, "dtype", "")):
                raise ValueError(
                    f"`{name}` must be booleans, True where a query may attend. Received: "
                    f"{mask.dtype}. Pass mask > 0 if 1 means that, or mask == 0 if 0 does, as in "
                    "masks to be added."
                )
            shape = tuple(getattr(mask, "shape", ()))
            pairs = zip(shape[::-1], sizes[::-1], strict=False)
            wrong = [pair for pair in pairs if None not in pair and pair[0] not in (1, pair[1])]
            if wrong or not (mask is None or len(shape) in (2, 3)):
                received = f"Received: shape {shape}. {remedy}"
                raise ValueError(f"`{name}` must broadcast to (B, T, S) = {sizes}. {received}")
        whole = [m if m is None or len(m.shape) == 3 else m[None] for m in masks]
        return Masks(*(mask if mask is None else ops.cast(mask, "bool") for mask in whole))

    def joined(self, *patterns: Tensor | None) -> Tensor | None:
        """Join all masks by `&`: broadcastable to (B, h, T, S); None if nothing is masked."""
        masks = [mask for mask in (*self, *patterns) if mask is not None]
        return ops.expand_dims(functools.reduce(ops.logical_and, masks), -3) if masks else None

    def of_keys(self) -> Tensor | None:
        """Return `attention` if it is a mask of keys, (B, 1, S); refuse one of single pairs."""
        mask = self.attention
        if mask is not None and tuple(mask.shape)[-2:-1] != (1,):
            raise ValueError(
                "This layer can mask keys only, not single pairs: pass attention_mask of shape "
                f"(B, 1, S). Received: shape {tuple(mask.shape)}. Mask padding by "
                "attention_mask=padding_mask(ids), and later positions by causal=causal_mask(T)."
            )
        return mask


ALL = Masks()


def distances(
    num_queries: int | Tensor,
    num_keys: int | Tensor,
    following: int | Tensor = 0,
    apart: int | Tensor = 1,
) -> Tensor:
    """Return how far each of S keys comes after each of T queries: integers (T, S), negative if the
    key comes first. `following` keys come after the last query's own position. Neighbours are
    `apart` positions apart.
    """
    first = num_keys - num_queries - following
    return (ops.arange(num_keys)[None, :] - (ops.arange(num_queries) + first)[:, None]) * apart
