"""Text generation and perplexity, by a run's language model or an exported one."""

import math
import os
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from keras_transformer.decoding.lengths import in_tokens, most_read, parse_length
from keras_transformer.inference.line_batches import (
    BATCH_TOKENS,
    LINE,
    checked_lengths,
    in_batches,
    listed,
)
from keras_transformer.inference.loading import (
    load_trained,
    module_class,
    refuse_other_task,
    refuse_precision,
)
from keras_transformer.runs.description import most_positions
from keras_transformer.runs.model_path import ModelPath
from keras_transformer.saved_models.signature import as_bytes, as_strings
from pipelines.vocabularies.vocabulary import Vocabulary

TASK = "language_modelling"


class Generator:
    """Continue texts, and compute how likely texts are."""

    def __init__(self, functions: Mapping, lengths: Callable, positions: int, max_length="+50"):
        self._functions = functions
        self._lengths = lengths
        self._positions = positions
        self._max_length = parse_length("max_length", max_length)

    @classmethod
    def of(cls, module) -> "Generator":
        """Return the generator of a live `GenerationModule`."""
        from keras_transformer.inference.functions import LiveFunctions

        lengths = _counting(module.source_tokenizer)
        return cls(LiveFunctions(module), lengths, module.positions, module.options.max_length)

    @classmethod
    def load(cls, path: str | os.PathLike, precision: str = "float32", **options) -> "Generator":
        """Load a run's folder, a checkpoint in one, a SavedModel, or ONNX or LiteRT graphs. Only a
        run takes a `precision` ("float32" or "bfloat16"); all but SavedModels take `options`,
        arguments of `DecodingOptions`.
        """
        model = ModelPath.of(path)
        description = model.describe()
        refuse_other_task(description, model.version or model.path, TASK)
        if model.is_portable:
            return _of_portable(model, precision, options)
        if model.version is None:
            kind = module_class(description)
            # Before the weights are loaded, so that wrong options are reported at once.
            decoding = kind.options_of(options)
            return cls.of(kind(*load_trained(model.run, precision), decoding))
        refuse_precision(model.version, precision)
        return _exported(model, options)

    def generate(self, prompts: Sequence[str], batch_tokens: int = BATCH_TOKENS) -> list[str]:
        """Return each prompt with its continuation. `batch_tokens` includes the new tokens."""
        prompts = listed(prompts, "prompts")
        lengths = self._checked(prompts, "Shorten it.")
        limits = (min(in_tokens(self._max_length, length), self._positions) for length in lengths)
        lengths = [*map(max, lengths, limits)]
        return in_batches(self._generated, [prompts], lengths, batch_tokens)

    def perplexities(self, lines: Sequence[str], batch_tokens: int | None = None, **place) -> dict:
        """Return exp(-log P / pieces) and exp(-log P / words) of lines as a JSON object, None if
        too large. A line's end is a piece and a word. Errors number lines from 1, or by `numbers`.
        """
        if not (lines := listed(lines)):
            raise ValueError("`lines` must have a line. Received: none.")
        lengths = self._checked(lines, "Split it into several lines.", **place)
        logs, counts = zip(*in_batches(self._score, [lines], lengths, batch_tokens), strict=True)
        log_probability = float(np.sum(logs, dtype=np.float64))
        pieces = int(np.sum(counts))
        words = sum(len(line.split()) + 1 for line in lines)
        return {
            "lines": len(lines),
            "pieces": pieces,
            "perplexity": rounded_perplexity(-log_probability / pieces),
            "perplexity_of_words": rounded_perplexity(-log_probability / words),
        }

    def _checked(self, lines, remedy, **place):
        most = most_read(self._positions)
        return checked_lengths(self._lengths, lines, LINE, remedy, most, **place)

    def _generated(self, prompts):
        return as_strings(self._functions["serving_default"](text=as_bytes(prompts))["generated"])

    def _score(self, lines):
        scored = self._functions["score"](text=as_bytes(lines))
        return list(zip(scored["log_probability"], scored["tokens"], strict=True))


def _of_portable(model: ModelPath, precision: str, options: Mapping) -> Generator:
    from keras_transformer.inference.portable import Portable

    refuse_precision(model.path, precision)
    portable = Portable(model.path, {**options, "seed": None})
    if portable.options.samples:
        # A search ignores the seed, as a run's does.
        portable = portable.replaced(options, lambda: None)
    max_length = portable.options.max_length

    def score(text):
        # The text of a language model is both its source and its target.
        lines = as_strings(text)
        sums, counts = zip(*portable.score(lines, lines), strict=True)
        return {"log_probability": np.array(sums), "tokens": np.array(counts)}

    def generate(text):
        return {"generated": as_bytes(portable.translate(as_strings(text)))}

    functions = {"serving_default": generate, "score": score}
    return Generator(functions, portable.lengths, portable.positions, max_length)


def _exported(model: ModelPath, options: Mapping) -> Generator:
    from keras_transformer.inference.exported import tokenizers_of
    from keras_transformer.inference.functions import saved_functions

    if changed := [name for name, value in options.items() if value is not None]:
        raise ValueError(
            f"{model.version} decodes as it was exported. Received: {', '.join(changed)}. Leave it "
            "out, name the folder of the run, or export it again with it."
        )
    functions = saved_functions(model)
    tokenizer, _ = tokenizers_of(functions)
    vocabulary = Vocabulary(tokenizer.serialized_model_proto())
    lengths = _counting(vocabulary.tokenizer)
    max_length = functions.facts.get("decoding", {}).get("max_length", "+50")
    return Generator(functions, lengths, most_positions(functions.facts), max_length)


def _counting(tokenizer):
    """Return a function that counts each line's tokens, EOS included, without truncation."""
    return lambda lines: tokenizer.tokenize(as_bytes(lines)).row_lengths().numpy().tolist()


def perplexity(nats: float) -> float:
    """Return exp(nats), infinite if it is too large for a float."""
    try:
        return math.exp(nats)
    except OverflowError:
        return math.inf


def rounded_perplexity(nats: float) -> float | None:
    """Return a perplexity for JSON, with three decimals; None if it is not finite."""
    number = perplexity(nats)
    return round(number, 3) if math.isfinite(number) else None


def in_words(number: float | None) -> str:
    """Return the result of `rounded_perplexity` as text."""
    return "infinite" if number is None else str(number)
