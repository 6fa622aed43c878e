"""A folder of graphs of ONNX or LiteRT with the signatures that a SavedModel of its model has: no
TensorFlow, and the search of `decoding.numpy_search`.

Options out of range are clamped as in a SavedModel. Rows of unequal options take turns.
"""

import pathlib

import numpy as np

from keras_transformer.decoding.lengths import LONGEST
from keras_transformer.decoding.numpy_search import beam_and_penalty
from keras_transformer.decoding.options import (
    MOST_HYPOTHESES,
    NEXT_PIECES,
    STEEPEST_PENALTY,
    TEMPERATURES,
)
from keras_transformer.decoding.remembered_options import LANGUAGES
from keras_transformer.inference.portable import Portable
from keras_transformer.saved_models.signature import (
    DEFAULT_SIGNATURE,
    NO_SCORE,
    Signature,
    TensorSpec,
    as_bytes,
    as_strings,
)
from keras_transformer.server.batcher import Cancellation
from keras_transformer.server.options import RequestError

TEXT = np.dtype(object)
INTEGER = np.dtype(np.int32)
LONG = np.dtype(np.int64)
NUMBER = np.dtype(np.float32)
TYPES = {TEXT: "DT_STRING", INTEGER: "DT_INT32", LONG: "DT_INT64", NUMBER: "DT_FLOAT"}
WHY = "its graphs give no attention. Serve the SavedModel."
FORMS = ("paper", "length")


class ServedPortable:
    """The model of a folder that `export --format=onnx` or `--format=litert` wrote. It has what a
    `TensorFlowModel` has.
    """

    lacking = dict.fromkeys(("align", "attend"), WHY)

    def __init__(self, folder: pathlib.Path):
        self.folder = self.extras = folder
        self._portable = Portable(folder, {})
        self.platform = self._portable.platform
        self.sentencepiece_models = self._portable.sentencepiece_models
        options = self._portable.options
        # A search by a request's options is a beam's, also where the export draws.
        self._beam, penalty = beam_and_penalty(options)
        self._width = options.samples or self._beam
        self._all = {"num_hypotheses": self._width}
        if self._portable.reads_source or not options.samples:
            self._all["beam_size"] = self._width
        drawn = {
            "temperature": np.array([options.temperature or 1.0], NUMBER),
            "seed": np.array([1 if options.seed is None else options.seed], LONG),
        }
        if self._portable.reads_source:
            searched = {
                "beam_size": np.array([self._beam], INTEGER),
                "length_penalty": np.array([penalty], NUMBER),
                "length_penalty_form": np.array([b""], TEXT),
                "max_length": np.array([0], INTEGER),
                "num_hypotheses": np.array([options.num_hypotheses], INTEGER),
            }
            if self._portable.labels:
                searched |= dict.fromkeys(LANGUAGES, np.array([b""], TEXT))
            self._output = "translation"
            self._outputs = "translations"
            self.signatures = {
                "score": _signature(SCORES, ("text", "reference")),
                "translate": _signature(self._hypotheses(None), **searched),
            }
        else:
            self._output = self._outputs = "generated"
            self.signatures = {"score": _signature(SCORES)}
            drawn["max_length"] = np.array([0], INTEGER)
        one = {self._output: (TEXT, ())}
        self.signatures |= {
            "next_pieces": _signature(
                SHOWN,
                prefix=np.array([b""], TEXT),
                temperature=np.array([1], NUMBER),
                top_k=np.array([0], INTEGER),
                top_p=np.array([1], NUMBER),
            ),
            DEFAULT_SIGNATURE: _signature(one),
            "nbest": _signature(self._hypotheses(self._width)),
            "sample": _signature(one, **drawn),
            **({"blockwise": _signature(one)} if self._portable.has_blocks else {}),
        }
        self.described = {name: _described(one) for name, one in sorted(self.signatures.items())}

    def run(
        self, name: str, inputs: dict[str, np.ndarray], cancellation: Cancellation | None = None
    ) -> dict[str, np.ndarray]:
        def stop():
            if cancellation and cancellation.cancelled():
                raise RequestError("Nobody waits for it.", 499)

        texts = {one: as_strings(inputs[one]) for one in ("text", "reference") if one in inputs}
        options = {one: array for one, array in inputs.items() if one not in texts}
        try:
            if name == "score":
                return self._score(texts["text"], texts.get("reference", texts["text"]), stop)
            if name in ("translate", "nbest"):
                return self._search(texts["text"], options, stop)
            if name == "next_pieces":
                return self._next_pieces(texts["text"], options, stop)
            blocks = {"blockwise": True} if name == "blockwise" else {}
            return self._best(texts["text"], options, stop, blocks)
        except ValueError as error:
            raise RequestError(str(error)) from error

    def warm_up(self) -> None:
        self.run(DEFAULT_SIGNATURE, {"text": np.array([b"a"], TEXT)})

    def close(self) -> None:
        self._portable = None

    def _score(self, lines, references, stop):
        pairs = self._portable.replaced({}, stop).score(lines, references)
        return {
            "log_probability": np.array([one for one, _ in pairs], np.float32),
            "tokens": np.array([count for _, count in pairs], np.int32),
        }

    def _next_pieces(self, lines, options, stop):
        """The likeliest pieces of each line, which takes a turn of its own."""
        portable = self._portable.replaced({}, stop)
        found = [None] * len(lines)
        for key, numbers in _alike(len(lines), options):
            prefix = key.pop("prefix").decode(errors="replace")
            key["temperature"] = _possible(key["temperature"])
            # The comparison is false for NaN.
            key["top_p"] = min(key["top_p"], 1.0) if key["top_p"] > 0 else 1.0
            for number in numbers:
                found[number] = portable.next_pieces(lines[number], prefix, NEXT_PIECES, **key)
        pieces, *shares = zip(*found, strict=True) if found else [()] * len(SHOWN)
        columns = [as_bytes(np.ravel(pieces)), *(np.array(one, np.float32) for one in shares)]
        shape = (len(lines), len(pieces[0]) if found else NEXT_PIECES)
        return {name: one.reshape(shape) for name, one in zip(SHOWN, columns, strict=True)}

    def _best(self, lines, options, stop, given):
        """The text of each line: as exported or given, or drawn by a request's options."""
        texts = [""] * len(lines)
        for key, numbers in _alike(len(lines), options):
            portable = self._portable.replaced(self._drawing(**key) if key else given, stop)
            for number, text in zip(
                numbers, portable.translate([lines[one] for one in numbers]), strict=True
            ):
                texts[number] = text
        return {self._output: as_bytes(texts)}

    def _search(self, lines, options, stop):
        """The hypotheses of each line: all as exported, or by a request's options."""
        found = [[]] * len(lines)
        width = 1 if options else self._width
        for key, numbers in _alike(len(lines), options):
            given = self._searching(**key) if key else self._all
            width = max(width, given["num_hypotheses"])
            hypotheses = self._portable.replaced(given, stop).translate_in_detail(
                [lines[one] for one in numbers], [""] * len(numbers)
            )
            for number, one in zip(numbers, hypotheses, strict=True):
                found[number] = one
        texts = [[one.text for one in of_line] + [""] * (width - len(of_line)) for of_line in found]
        scores = np.full((len(lines), width), NO_SCORE, np.float32)
        for row, of_line in zip(scores, found, strict=True):
            row[: len(of_line)] = [max(one.score, NO_SCORE) for one in of_line]
        flat = as_bytes([text for of_line in texts for text in of_line])
        return {self._outputs: flat.reshape(len(lines), width), "scores": scores}

    def _searching(
        self, beam_size, length_penalty, length_penalty_form, max_length, num_hypotheses, **labels
    ):
        beam = min(max(beam_size, 1), max(MOST_HYPOTHESES, self._beam))
        form = length_penalty_form.decode(errors="replace")
        return {
            "beam_size": beam,
            # The comparison is false for NaN.
            "length_penalty": min(length_penalty, STEEPEST_PENALTY) if length_penalty >= 0 else 0.0,
            "length_penalty_form": form if form in FORMS else None,
            "max_length": min(max_length, LONGEST) if max_length > 0 else None,
            "num_hypotheses": min(max(num_hypotheses, 1), beam),
            **{name: one.decode(errors="replace") or None for name, one in labels.items()},
        }

    def _drawing(self, temperature, seed, max_length=0):
        return {
            "samples": 1,
            "num_hypotheses": 1,
            "temperature": _possible(temperature),
            "seed": seed,
            # In pieces after the text.
            "max_length": f"+{min(max_length, LONGEST)}" if max_length > 0 else None,
        }

    def _hypotheses(self, width):
        return {self._outputs: (TEXT, (width,)), "scores": (NUMBER, (width,))}


# As many as there are, `NEXT_PIECES` at most.
SHOWN = {
    "pieces": (TEXT, (None,)),
    "probabilities": (NUMBER, (None,)),
    "model_probabilities": (NUMBER, (None,)),
}
SCORES = {"log_probability": (NUMBER, ()), "tokens": (INTEGER, ())}


def _signature(outputs, required=("text",), **defaults):
    """A signature of such outputs, types and sizes of a row by name, and inputs."""
    types = {**dict.fromkeys(required, TEXT), **{one: a.dtype for one, a in defaults.items()}}
    return Signature(
        {name: TensorSpec(name, dtype, (None,)) for name, dtype in sorted(types.items())},
        {name: TensorSpec(name, t, (None, *sizes)) for name, (t, sizes) in sorted(outputs.items())},
        defaults,
    )


def _possible(temperature):
    lowest, highest = TEMPERATURES
    return min(max(temperature, lowest), highest) if temperature > 0 else 1.0


def _described(signature):
    """As TF Serving describes a signature."""

    def tensors(specs):
        return {
            name: {
                "dtype": TYPES[spec.dtype],
                "tensor_shape": {
                    "dim": [
                        {"size": str(-1 if size is None else size), "name": ""}
                        for size in spec.shape
                    ],
                    "unknown_rank": False,
                },
                "name": name,
            }
            for name, spec in specs.items()
        }

    return {
        "inputs": tensors(signature.inputs),
        "outputs": tensors(signature.outputs),
        "method_name": "tensorflow/serving/predict",
    }


def _alike(count, options):
    """The rows of equal options: these, of one row, and the rows' numbers."""
    if not options:
        return [({}, list(range(count)))]
    rows = {name: np.broadcast_to(array, (count,)).tolist() for name, array in options.items()}
    groups = {}
    for number, values in enumerate(zip(*rows.values(), strict=True)):
        groups.setdefault(values, []).append(number)
    return [(dict(zip(rows, values, strict=True)), found) for values, found in groups.items()]
