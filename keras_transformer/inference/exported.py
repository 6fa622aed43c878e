"""A SavedModel called from Python: a session runs its signatures, without Keras."""

import functools
import pathlib
import threading
from collections.abc import Mapping

import numpy as np
import sentencepiece
import tensorflow as tf

from keras_transformer.decoding import DecodingOptions
from keras_transformer.decoding.lengths import LONGEST
from keras_transformer.decoding.options import MOST_HYPOTHESES, STEEPEST_PENALTY
from keras_transformer.decoding.remembered_options import LANGUAGES, check_languages
from keras_transformer.inference.functions import SavedFunctions
from keras_transformer.inference.live import Hypothesis, Live
from keras_transformer.saved_models.session import reload
from keras_transformer.saved_models.signature import NO_SCORE, as_bytes, as_strings
from pipelines.trees import bracketing
from pipelines.trees.linearization import alphabet_of
from pipelines.vocabularies.protected_spans import ProtectedSpans
from pipelines.vocabularies.span_marks import marks_of
from pipelines.vocabularies.vocabulary import RESERVED, fingerprint_of

# The options of each signature.
OPTIONS = {
    "serving_default": (),
    "translate": (
        *("beam_size", "length_penalty", "length_penalty_form", "max_length", "num_hypotheses"),
        *LANGUAGES,
    ),
    "blockwise": ("blockwise",),
    "sample": ("temperature", "seed"),
}
# The signatures that return one translation a line without its score, and their options.
WITHOUT_SCORES = {"sample": "samples", "blockwise": "blockwise"}
# `ParsingModule.output`, which cannot be imported without Keras.
TREE = "tree"


class Exported:
    """A SavedModel, as `Translator` calls it: see `Live`. `options` replace the exported ones."""

    def __init__(self, folder: pathlib.Path, options: dict, description: Mapping | None = None):
        self._folder = folder
        facts = description or {}
        self._functions = SavedFunctions(folder, facts)
        self._lock = threading.Lock()
        # The name of the output text: "translation" or "tree".
        self._output = _only_output(self._functions)
        self._source, self._target = tokenizers_of(self._functions)
        self._tree_leaves = None
        # Beside the graph, for `model.json` lacks the words that have capitals.
        self.marks = marks_of(ProtectedSpans.load(folder / "assets.extra"))
        if self._output == TREE:
            pieces = map(self._target.id_to_piece, range(len(self._target)))
            self._tree_leaves = alphabet_of(list(pieces)).leaves
        widest = max(MOST_HYPOTHESES, facts.get("decoding", {}).get("beam_size", 1))
        self._limits = {
            **dict.fromkeys(("beam_size", "num_hypotheses"), widest),
            "length_penalty": STEEPEST_PENALTY,
            "max_length": LONGEST,
        }
        self._languages = facts.get("languages", [])
        # Tokens around those of a text: EOS, and the label of its language if there are labels.
        self._added = 2 if self._languages else 1
        exported = facts.get("decoding", {}).get("beam_size")
        self._translating, self._options = request(options, exported)
        self.check(self._options)
        self._require(self._translating)

    def check(self, options: Mapping) -> None:
        """Refuse out-of-range options, which the SavedModel would clamp."""
        for name, most in self._limits.items():
            if float(options.get(name, 0)) > most:
                raise ValueError(
                    f"{name}={options[name]}: {self._folder} takes at most {most:g}. Pass less, or "
                    "name the folder of its run."
                )
        check_languages(options, self._languages, self._folder)

    def lengths(self, lines: list[str]) -> list[int]:
        texts = as_bytes(lines)
        if self.marks:
            texts = self.marks.marked(tf.constant(texts, tf.string)).text.numpy()
        return [len(ids) + self._added for ids in self._source.encode(as_strings(texts))]

    def has_piece(self, piece: str) -> bool:
        return piece not in RESERVED and self._source.piece_to_id(piece) != self._source.unk_id()

    def target_lengths(self, references: list[str]) -> list[int]:
        """Return the number of tokens of each translation, EOS included; of a tree, its symbols."""
        texts = as_bytes(references)
        if self._tree_leaves:
            texts = bracketing.symbols(tf.constant(texts, tf.string), self._tree_leaves).numpy()
        return [len(ids) + self._added for ids in self._target.encode(as_strings(texts))]

    def translate(self, lines: list[str]) -> list[str]:
        """Return the best translation of each line, or a sample."""
        if self._translating == "translate":
            return self._best(lines, **self._options)
        return as_strings(self._run(self._translating, text=lines, **self._options)[self._output])

    def _best(self, lines, **options):
        answer = self._run("translate", text=lines, **options)
        return as_strings(answer[f"{self._output}s"][:, 0])

    def translate_in_detail(self, lines: list[str], prefixes: list[str]) -> list[list[Hypothesis]]:
        """See `Live`. Samples have no scores, and prefixes need the exported options."""
        if self._translating == "serving_default":
            return self._module().translate_in_detail(lines, prefixes)
        option = WITHOUT_SCORES.get(self._translating)
        if any(prefixes):
            raise ValueError(
                f"prefixes and {option or ', '.join(self._options)} exclude each other with a "
                "SavedModel: leave one out, or name the folder of its run."
            )
        if option:
            raise ValueError(
                f"a SavedModel gives no scores of {option}: leave out `{option}` or --json, or "
                "name the folder of its run."
            )
        answer = self._run("translate", text=lines, **self._options)
        return [
            [
                Hypothesis(text, float(score), None, None)
                for text, score in zip(as_strings(texts), scores, strict=True)
                if score > NO_SCORE
            ]
            for texts, scores in zip(answer[f"{self._output}s"], answer["scores"], strict=True)
        ]

    def translate_with_penalties(
        self, beam_size: int, length_penalties: list[float], lines: list[str]
    ) -> list[list[str]]:
        """Return the best translation of each line by each length penalty; each needs a search."""
        if self._translating == "sample":
            raise ValueError("samples are drawn without a length penalty: leave out `samples`.")
        search = functools.partial(self._best, lines, **self._options | {"beam_size": beam_size})
        columns = (search(length_penalty=penalty) for penalty in length_penalties)
        return [list(row) for row in zip(*columns, strict=True)]

    def score(self, lines: list[str], references: list[str]) -> list[tuple[float, int]]:
        self._refuse_languages()
        answer = self._run("score", text=lines, reference=references)
        return list(zip(answer["log_probability"].tolist(), answer["tokens"].tolist(), strict=True))

    def attention(self, lines: list[str], references: list[str]) -> dict[str, np.ndarray]:
        self._require("align")
        self._refuse_languages()
        return self._module().attention(lines, references)

    def cross_attention(
        self, lines: list[str], references: list[str]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        self._refuse_languages()
        answer = self._run("align", text=lines, reference=references)
        return answer["source_pieces"], answer["target_pieces"], answer["attention"]

    def _refuse_languages(self):
        if languages := [name for name in LANGUAGES if name in self._options]:
            raise ValueError(
                f"a SavedModel takes {' and '.join(languages)} only to translate. Name the folder "
                "of its run, or leave it out."
            )

    def _require(self, signature):
        if signature not in self._functions:
            raise ValueError(
                f"{self._folder} has no signature `{signature}`: an ensemble has no attention of "
                "its own, an export of samples has no search, a model without --block_size has no "
                "blocks, and one made before 0.4 has only `serving_default`. Name the folder of "
                "one run, or export it again."
            )

    def _run(self, signature, **inputs):
        """Call a signature with lists of strings, and with options for all of them."""
        self._require(signature)
        types = self._functions.signatures[signature].inputs
        if unknown := inputs.keys() - types.keys():
            raise ValueError(
                f"`{signature}` of {self._folder} has no {', '.join(unknown)}, since an earlier "
                "version wrote it. Leave it out, or export the run again."
            )
        arrays = {
            name: as_bytes(value)
            if isinstance(value, list)
            else np.array([value], types[name].dtype)
            for name, value in inputs.items()
        }
        return self._functions[signature](**arrays)

    @functools.cached_property
    def _reloaded(self):
        return Live(reload(self._folder), gives_attention=True)

    def _module(self):
        """Return the exported module, reloaded once for the functions that are not signatures."""
        with self._lock:
            return self._reloaded


def _only_output(functions):
    default = functions.signatures.get("serving_default")
    outputs = [*default.outputs] if default else []
    if len(outputs) != 1:
        raise ValueError(
            f"{functions.name} must give one string for each line by `serving_default`. Received: "
            f"{', '.join(sorted(outputs)) or 'no such signature'}. It is no translator of ours."
        )
    return outputs[0]


def tokenizers_of(functions: SavedFunctions) -> tuple:
    """Return the `SentencePieceProcessor`s of source and target inside a SavedModel."""
    models = functions.sentencepiece_models
    if not models:
        raise ValueError(
            f"{functions.name} has no SentencePiece tokenizer: it is no translator of ours."
        )
    by_fingerprint = {fingerprint_of(model): model for model in models}
    fingerprint = functions.facts.get("vocabulary", {}).get("fingerprint", "")
    named = [by_fingerprint[key] for key in fingerprint.split("-") if key in by_fingerprint]
    processors = [
        sentencepiece.SentencePieceProcessor(model_proto=model) for model in named or models[:1]
    ]
    return processors[0], processors[-1]


def request(options: Mapping, beam_size: int | None) -> tuple[str, dict]:
    """Return the signature for some options, and the options to call it with. An option of None is
    as exported. `beam_size` is the exported one, or None if it is unknown.
    """
    options = {name: value for name, value in options.items() if value is not None}
    has_beam = not (options.get("samples") or options.get("blockwise"))
    exported = {"beam_size": beam_size} if beam_size is not None and has_beam else {}
    DecodingOptions(**exported | options)
    samples = options.pop("samples", 0)
    if samples > 1:
        raise ValueError(
            f"samples={samples}: a SavedModel draws one translation of a line. Pass samples=1, or "
            "name the folder of its run."
        )
    signature = "sample" if samples else "translate" if options else "serving_default"
    if options.pop("blockwise", False):
        signature = "blockwise"
        options.pop("beam_size", None)
    for name, value in options.items():
        if name not in OPTIONS[signature]:
            raise ValueError(
                f"{name}={value}: a SavedModel takes {', '.join(OPTIONS[signature])} and no other "
                "option. Name the folder of its run, or export it with other options (python -m "
                "keras_transformer.export)."
            )
    if not str(options.get("max_length", 0)).isdecimal():
        raise ValueError(
            f"max_length={options['max_length']}: a SavedModel takes a number of tokens. Pass one "
            "such as 80, or name the folder of its run."
        )
    return signature, options
