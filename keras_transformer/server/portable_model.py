"""A folder of graphs of ONNX or LiteRT, served with the signatures of the SavedModel, but without
TensorFlow, by the search of `decoding.numpy_search`.

Options out of range are clamped as in a SavedModel. Rows run in groups of equal options.
"""

import pathlib

import numpy as np

from keras_transformer.decoding.lengths import LONGEST, in_tokens, parse_length
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
NO_ATTENTION = "its graphs give no attention. Serve the SavedModel."
FORMS = ("paper", "length")


class ServedPortable:
    """The model of a folder that `export --format=onnx` or `--format=litert` wrote. Its interface
    is that of a `TensorFlowModel`.
    """

    def __init__(self, folder: pathlib.Path):
        self.folder = self.extras = folder
        self._portable = Portable(folder, {})
        self.platform = self._portable.platform
        self.sentencepiece_models = self._portable.sentencepiece_models
        options = self._portable.options
        # A request's options always mean a beam search, even if the export samples.
        self._beam, penalty = beam_and_penalty(options)
        self._width = options.samples or self._beam
        self._exported_search = {"num_hypotheses": self._width}
        self._exported_search |= {} if options.samples else {"beam_size": self._width}
        sampling = {
            "temperature": np.array([options.temperature or 1.0], NUMBER),
            "seed": np.array([1 if options.seed is None else options.seed], LONG),
        }
        # The signature of the SavedModel that gives attention.
        attention = "align" if self._portable.reads_source else "attend"
        self.missing_signatures = {attention: NO_ATTENTION}
        if self._portable.reads_source:
            search = {
                "beam_size": np.array([self._beam], INTEGER),
                "length_penalty": np.array([penalty], NUMBER),
                "length_penalty_form": np.array([b""], TEXT),
                "max_length": np.array([0], INTEGER),
                "num_hypotheses": np.array([options.num_hypotheses], INTEGER),
            }
            if self._portable.labels:
                search |= dict.fromkeys(LANGUAGES, np.array([b""], TEXT))
            self._output = "translation"
            self._outputs = "translations"
            self.signatures = {
                "score": _signature(SCORES, ("text", "reference")),
                "translate": _signature(self._hypotheses(None), **search),
            }
        else:
            self._output = self._outputs = "generated"
            self.signatures = {"score": _signature(SCORES)}
            sampling["max_length"] = np.array([0], INTEGER)
        answer = {self._output: (TEXT, ())}
        self.signatures |= {
            "next_pieces": _signature(
                NEXT,
                prefix=np.array([b""], TEXT),
                temperature=np.array([1], NUMBER),
                top_k=np.array([0], INTEGER),
                top_p=np.array([1], NUMBER),
            ),
            DEFAULT_SIGNATURE: _signature(answer),
            "nbest": _signature(self._hypotheses(self._width)),
            "sample": _signature(answer, **sampling),
            **({"blockwise": _signature(answer)} if self._portable.has_blocks else {}),
        }
        signatures = sorted(self.signatures.items())
        self.signature_defs = {name: _signature_def(signature) for name, signature in signatures}

    def run(
        self, name: str, inputs: dict[str, np.ndarray], cancellation: Cancellation | None = None
    ) -> dict[str, np.ndarray]:
        def stop():
            if cancellation and cancellation.cancelled():
                raise RequestError("Nobody waits for it.", 499)

        options = dict(inputs)
        lines = as_strings(options.pop("text"))
        try:
            if name == "score":
                references = as_strings(options["reference"]) if "reference" in options else lines
                return self._score(lines, references, stop)
            if name in ("translate", "nbest"):
                return self._search(lines, options, stop)
            if name == "next_pieces":
                return self._next_pieces(lines, options, stop)
            blocks = {"blockwise": True} if name == "blockwise" else {}
            return self._best(lines, options, stop, blocks)
        except ValueError as error:
            raise RequestError(str(error)) from error

    def warm_up(self) -> None:
        self.run(DEFAULT_SIGNATURE, {"text": np.array([b"a"], TEXT)})

    def close(self) -> None:
        self._portable = None

    def _score(self, lines, references, stop):
        pairs = self._portable.replaced({}, stop).score(lines, references)
        return {
            "log_probability": np.array([log_p for log_p, _ in pairs], np.float32),
            "tokens": np.array([count for _, count in pairs], np.int32),
        }

    def _next_pieces(self, lines, options, stop):
        """Return the likeliest next pieces of each line. Lines are run one by one."""
        portable = self._portable.replaced({}, stop)
        rows = [None] * len(lines)
        for group, numbers in _groups(len(lines), options):
            prefix = group.pop("prefix").decode(errors="replace")
            group["temperature"] = _clamped_temperature(group["temperature"])
            # The comparison is false for NaN.
            group["top_p"] = min(group["top_p"], 1.0) if group["top_p"] > 0 else 1.0
            for number in numbers:
                rows[number] = portable.next_pieces(lines[number], prefix, NEXT_PIECES, **group)
        pieces, *shares = zip(*rows, strict=True) if rows else [()] * len(NEXT)
        columns = [as_bytes(np.ravel(pieces)), *(np.array(share, np.float32) for share in shares)]
        shape = (len(lines), len(pieces[0]) if rows else NEXT_PIECES)
        return {name: column.reshape(shape) for name, column in zip(NEXT, columns, strict=True)}

    def _best(self, lines, options, stop, blocks):
        """Return a text for each line: as exported, by `blocks`, or sampled by request options."""
        texts = [""] * len(lines)
        for group, numbers in _groups(len(lines), options):
            decoding = self._sampling_options(**group) if group else blocks
            chosen = [lines[number] for number in numbers]
            answers = self._portable.replaced(decoding, stop).translate(chosen)
            for number, text in zip(numbers, answers, strict=True):
                texts[number] = text
        return {self._output: as_bytes(texts)}

    def _search(self, lines, options, stop):
        """Return the hypotheses of each line: all as exported, or by a request's options."""
        nbest = [[]] * len(lines)
        width = 1 if options else self._width
        for group, numbers in _groups(len(lines), options):
            decoding = self._search_options(**group) if group else self._exported_search
            width = max(width, decoding["num_hypotheses"])
            chosen = [lines[number] for number in numbers]
            portable = self._portable.replaced(decoding, stop)
            answers = portable.translate_in_detail(chosen, [""] * len(chosen))
            for number, hypotheses in zip(numbers, answers, strict=True):
                nbest[number] = hypotheses
        texts = []
        scores = np.full((len(lines), width), NO_SCORE, np.float32)
        for row, hypotheses in zip(scores, nbest, strict=True):
            row[: len(hypotheses)] = [max(answer.score, NO_SCORE) for answer in hypotheses]
            texts += [answer.text for answer in hypotheses] + [""] * (width - len(hypotheses))
        return {self._outputs: as_bytes(texts).reshape(len(lines), width), "scores": scores}

    def _search_options(
        self, beam_size, length_penalty, length_penalty_form, max_length, num_hypotheses, **labels
    ):
        beam = min(max(beam_size, 1), max(MOST_HYPOTHESES, self._beam))
        form = length_penalty_form.decode(errors="replace")
        return {
            **self._lengths(max_length, ""),
            "beam_size": beam,
            # The comparison is false for NaN.
            "length_penalty": min(length_penalty, STEEPEST_PENALTY) if length_penalty >= 0 else 0.0,
            "length_penalty_form": form if form in FORMS else None,
            "num_hypotheses": min(max(num_hypotheses, 1), beam),
            **{name: label.decode(errors="replace") or None for name, label in labels.items()},
        }

    def _sampling_options(self, temperature, seed, max_length=0):
        return {
            **self._lengths(max_length, "+"),
            "samples": 1,
            "num_hypotheses": 1,
            "temperature": _clamped_temperature(temperature),
            "seed": seed,
        }

    def _lengths(self, max_length, sign):
        """Return the options of a request's limit; the sign "+": in pieces after the text. As in a
        SavedModel, it counts for more than the exported `min_length`.
        """
        if max_length <= 0:
            return {}
        longest = f"{sign}{min(max_length, LONGEST)}"
        lengths = {"max_length": longest, "min_length": self._portable.options.min_length}
        most, least = (in_tokens(parse_length(*length), 1) for length in lengths.items())
        return lengths | ({"min_length": longest} if most < least else {})

    def _hypotheses(self, width):
        return {self._outputs: (TEXT, (width,)), "scores": (NUMBER, (width,))}


# Outputs of the signature next_pieces: at most `NEXT_PIECES` columns.
NEXT = {
    "pieces": (TEXT, (None,)),
    "probabilities": (NUMBER, (None,)),
    "model_probabilities": (NUMBER, (None,)),
}
SCORES = {"log_probability": (NUMBER, ()), "tokens": (INTEGER, ())}


def _signature(outputs, required=("text",), **defaults):
    """Make a signature. `outputs` has, by name, the type and the sizes of a row."""
    types = dict.fromkeys(required, TEXT) | {name: a.dtype for name, a in defaults.items()}
    return Signature(
        {name: TensorSpec(name, dtype, (None,)) for name, dtype in sorted(types.items())},
        {name: TensorSpec(name, t, (None, *sizes)) for name, (t, sizes) in sorted(outputs.items())},
        defaults,
    )


def _clamped_temperature(temperature):
    lowest, highest = TEMPERATURES
    return min(max(temperature, lowest), highest) if temperature > 0 else 1.0


def _signature_def(signature):
    """Describe a signature as TF Serving does."""
    return {
        "inputs": {name: _tensor_info(spec) for name, spec in signature.inputs.items()},
        "outputs": {name: _tensor_info(spec) for name, spec in signature.outputs.items()},
        "method_name": "tensorflow/serving/predict",
    }


def _tensor_info(spec):
    sizes = [str(-1 if size is None else size) for size in spec.shape]
    shape = {"dim": [{"size": size, "name": ""} for size in sizes], "unknown_rank": False}
    return {"dtype": TYPES[spec.dtype], "tensor_shape": shape, "name": spec.name}


def _groups(count, options):
    """Group rows by equal options: pairs of the options of one row, and the rows' numbers."""
    if not options:
        return [({}, list(range(count)))]
    rows = {name: np.broadcast_to(array, (count,)).tolist() for name, array in options.items()}
    groups = {}
    for number, values in enumerate(zip(*rows.values(), strict=True)):
        groups.setdefault(values, []).append(number)
    return [(dict(zip(rows, values, strict=True)), numbers) for values, numbers in groups.items()]
