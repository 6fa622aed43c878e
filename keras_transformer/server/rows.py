"""A request's arrays as rows, which may share a batch, and options, which hold for all rows."""

import dataclasses

import numpy as np

from keras_transformer.saved_models.signature import Signature
from keras_transformer.server.options import RequestError, ServeOptions

# The signatures' input of a PNG file's bytes, which are no text.
PICTURE = "png"


@dataclasses.dataclass(frozen=True)
class Rows:
    """Arrays for a signature: `count` rows of inputs, by name; options by name, without rows or
    with one row for all; and the bytes of memory that computing a row may take.
    """

    count: int
    inputs: dict
    options: dict
    row_memory: int = 0

    @property
    def options_key(self) -> tuple:
        """A hashable key, equal for equal options."""
        return tuple(
            (name, array.shape, str(array.tolist())) for name, array in sorted(self.options.items())
        )


def rows(arrays: dict[str, np.ndarray], signature: Signature, limits: ServeOptions) -> Rows:
    """Split a request's arrays into rows and options. Absent ones get the signature's defaults.

    A required input without an axis of rows is an option, and so is an input with a default if its
    values are the same in every row.
    """
    fitted = {
        name: _fitted(name, array, signature.inputs[name].shape) for name, array in arrays.items()
    }
    required = {name: fitted[name] for name in signature.required}
    inputs = {name: array for name, array in required.items() if array.ndim}
    options = {name: array for name, array in required.items() if not array.ndim}
    # If no required input has rows, the optional ones that are no single value give their number.
    counted = inputs or {name: a for name, a in fitted.items() if a.ndim and len(a) != 1}
    counts = {name: len(array) for name, array in counted.items()}
    if len(set(counts.values())) > 1:
        raise RequestError(f"The inputs must have equally many rows. Received: {counts}.")
    count = max(counts.values(), default=1)
    refuse_many(count, limits)
    for name, default in signature.defaults.items():
        array = fitted.get(name, default)
        if array.ndim and array.shape[0] not in (1, count):
            raise RequestError(
                f"`{name}` must have one value, or {count}, one a row. Received: {array.shape[0]}."
            )
        # Equal rows become one row, if the default is one row and another input keeps its rows.
        has_rows = inputs and array.ndim and len(array) > 1
        if default.shape[:1] == (1,) and has_rows and (array == array[:1]).all():
            array = array[:1]
        (inputs if array.ndim and count > 1 and array.shape[0] == count else options)[name] = array
    refuse_long(fitted, limits)
    return Rows(count, inputs, options)


def refuse_many(count: int, limits: ServeOptions) -> None:
    """Refuse more rows than the server accepts."""
    if count > limits.max_batch_size:
        raise RequestError(
            f"Task size {count} is larger than maximum input batch size {limits.max_batch_size}. "
            "Send several requests."
        )


def refuse_long(arrays: dict[str, np.ndarray], limits: ServeOptions) -> None:
    """Refuse a text that is longer than the server accepts."""
    for name, array in arrays.items():
        if array.dtype == object and name != PICTURE:
            longest = max(map(len, array.reshape(-1)), default=0)
            if longest > limits.max_text_bytes:
                raise RequestError(
                    f"`{name}` must be no longer than {limits.max_text_bytes:,} bytes. Received: "
                    f"{longest:,}. Split the text."
                )


def _fitted(name, array, shape):
    """Fit an array to a signature's rank: add a batch axis, or drop surplus last axes of 1."""
    if shape is None:
        return array
    if array.ndim == len(shape) - 1:
        array = array[None]
    while array.ndim > len(shape) and array.shape[-1] == 1:
        array = array[..., 0]
    if array.ndim != len(shape) or any(
        size not in (None, length) for size, length in zip(shape, array.shape, strict=False)
    ):
        expected = ",".join("?" if size is None else str(size) for size in shape)
        raise RequestError(
            f"`{name}` must have shape [{expected}]. Received: [{','.join(map(str, array.shape))}]."
        )
    return array


def in_parts(whole: Rows, most: int) -> list[Rows]:
    """Split `Rows` into parts of at most `most` rows each."""
    return [
        dataclasses.replace(
            whole,
            count=min(most, whole.count - start),
            inputs={name: array[start : start + most] for name, array in whole.inputs.items()},
        )
        for start in range(0, max(whole.count, 1), most)
    ]


def joined(several: list[Rows]) -> dict[str, np.ndarray]:
    """Concatenate the inputs of several `Rows` with equal options to one batch."""
    first = several[0]
    if len(several) == 1:
        return {**first.inputs, **first.options}
    return {
        name: np.concatenate([part.inputs[name] for part in several]) for name in first.inputs
    } | first.options


def parted(outputs: dict[str, np.ndarray], counts: list[int]) -> list[dict[str, np.ndarray]]:
    """Split the outputs of such a batch into those of each `Rows`."""
    if len(counts) == 1:
        return [outputs]
    if any(not array.ndim or array.shape[0] != sum(counts) for array in outputs.values()):
        raise RequestError(f"The outputs must have {sum(counts)} rows, as the inputs.", 500)
    ends = np.cumsum(counts)[:-1]
    split = {name: np.split(array, ends) for name, array in outputs.items()}
    return [{name: parts[number] for name, parts in split.items()} for number in range(len(counts))]
