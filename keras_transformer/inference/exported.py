"""A SavedModel called from Python: its signatures run in a session, without Keras."""

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
from pipelines.vocabularies.span_marks import SpanMarks
from pipelines.vocabularies.vocabulary import RESERVED, fingerprint_of

# The options that a signature takes.
OPTIONS = {
    "serving_default": (),
    "translate": (
        *("beam_size", "length_penalty", "length_penalty_form", "max_length", "num_hypotheses"),
        *LANGUAGES,
    ),
    "blockwise": (),
    "sample": ("temperature", "seed"),
}
# Signatures of one translation a line, and the options that ask for them.
WITHOUT_SCORES = {"sample": "samples", "blockwise": "blockwise"}
# What a parser's text is called: `ParsingModule.output`, which would import Keras.
TREE = "tree"


class Exported:
    """What `Translator` calls of a SavedModel, as `Live`; `options` replace the exported ones."""

    def __init__(self, folder: pathlib.Path, options: dict, description: Mapping | None = None):
        self._folder = folder
        facts = description or {}
        self._functions = SavedFunctions(folder, facts)
        self._lock = threading.Lock()
        # What the text that comes out is called: "translation", "tree".
        self._output = _only_output(self._functions)
        self._source, self._target = tokenizers_of(self._functions)
        self._tree_leaves = None
        protected = ProtectedSpans.in_description(facts)
        self.marks = SpanMarks(protected) if protected else None
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
        exported = facts.get("decoding", {}).get("beam_size")
        self._translating, self._options = request(options, exported)
        self.check(self._options)
        self._require(self._translating)

    def check(self, options: Mapping) -> None:
        """Refuse options that the SavedModel would clamp."""
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
        return [len(ids) + 1 for ids in self._source.encode(as_strings(texts))]

    def has_piece(self, piece: str) -> bool:
        return piece not in RESERVED and self._source.piece_to_id(piece) != self._source.unk_id()

    def target_lengths(self, references: list[str]) -> list[int]:
        """How many tokens each translation has, likewise. Of a tree, that is its symbols."""
        texts = as_bytes(references)
        if self._tree_leaves:
            texts = bracketing.symbols(tf.constant(texts, tf.string), self._tree_leaves).numpy()
        return [len(ids) + 1 for ids in self._target.encode(as_strings(texts))]

    def translate(self, lines: list[str]) -> list[str]:
        """The best translation of each line, or the one that is drawn."""
        answer = self._run(self._translating, text=lines, **self._options)
        if self._translating == "translate":
            return as_strings(answer[f"{self._output}s"][:, 0])
        return as_strings(answer[self._output])

    def translate_in_detail(self, lines: list[str], prefixes: list[str]) -> list[list[Hypothesis]]:
        """Samples have no scores, and prefixes go with the exported options alone."""
        if self._translating == "serving_default":
            return self._module().translate_in_detail(lines, prefixes)
        if option := WITHOUT_SCORES.get(self._translating):
            raise ValueError(
                f"a SavedModel gives no scores of {option}: leave out `{option}` or --json, or "
                "name the folder of its run."
            )
        if any(prefixes):
            raise ValueError(
                f"prefixes and {', '.join(self._options)} exclude each other with a SavedModel: "
                "leave one out, or name the folder of its run."
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
        """The best translation of each line by each length penalty, a search for each."""
        if self._translating == "sample":
            raise ValueError("samples are drawn without a length penalty: leave out `samples`.")
        columns = []
        for penalty in length_penalties:
            options = {**self._options, "beam_size": beam_size, "length_penalty": penalty}
            answer = self._run("translate", text=lines, **options)
            columns.append(as_strings(answer[f"{self._output}s"][:, 0]))
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
        if said := [name for name in LANGUAGES if name in self._options]:
            raise ValueError(
                f"a SavedModel takes {' and '.join(said)} to translate alone. Name the folder of "
                "its run, or leave it out."
            )

    def _require(self, signature):
        if signature not in self._functions:
            raise ValueError(
                f"{self._folder} has no signature `{signature}`: an ensemble has no attention of "
                "its own, an export that draws has no search, a model without --block_size has no "
                "blocks, and one made before 0.4 has only `serving_default`. Name the folder of "
                "one run, or export it again."
            )

    def _run(self, signature, **inputs):
        """Call a signature with lists of strings and with options that hold for all of them."""
        self._require(signature)
        types = self._functions.signatures[signature].inputs
        if lacking := inputs.keys() - types.keys():
            raise ValueError(
                f"`{signature}` of {self._folder} has no {', '.join(lacking)}, for an earlier "
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
        """The exported module, reloaded once for the functions that are no signatures."""
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
    """The `SentencePieceProcessor`s inside a SavedModel: of the source, and of the target."""
    models = functions.sentencepiece_models
    if not models:
        raise ValueError(
            f"{functions.name} has no SentencePiece tokenizer: it is no translator of ours."
        )
    by_fingerprint = {fingerprint_of(model): model for model in models}
    fingerprint = functions.facts.get("vocabulary", {}).get("fingerprint", "")
    named = [by_fingerprint[one] for one in fingerprint.split("-") if one in by_fingerprint]
    loaded = [
        sentencepiece.SentencePieceProcessor(model_proto=model) for model in named or models[:1]
    ]
    return loaded[0], loaded[-1]


def request(options: Mapping, beam_size: int | None) -> tuple[str, dict]:
    """The signature that translates with some options, and those of them that it takes. None is as
    exported; `beam_size` is the exported one, None if it is not known.
    """
    given = {name: value for name, value in options.items() if value is not None}
    is_other = given.get("samples") or given.get("blockwise")
    searched = {} if beam_size is None or is_other else {"beam_size": beam_size}
    DecodingOptions(**searched | given)
    samples = given.pop("samples", 0)
    if samples > 1:
        raise ValueError(
            f"samples={samples}: a SavedModel draws one translation of a line. Pass samples=1, or "
            "name the folder of its run."
        )
    signature = "sample" if samples else "translate" if given else "serving_default"
    if given.pop("blockwise", False):
        signature = "blockwise"
        given.pop("beam_size", None)
    for name, value in given.items():
        if name not in OPTIONS[signature]:
            raise ValueError(
                f"{name}={value}: a SavedModel takes {', '.join(OPTIONS[signature])} and no other "
                "option. Name the folder of its run, or export it with other options (python -m "
                "keras_transformer.export)."
            )
    if not str(given.get("max_length", 0)).isdecimal():
        raise ValueError(
            f"max_length={given['max_length']}: a SavedModel takes a number of tokens. Pass one "
            "such as 80, or name the folder of its run."
        )
    return signature, given
