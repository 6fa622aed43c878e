"""Beginnings of texts to texts, by a run's language model or an exported one."""

import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from keras_transformer.inference.batches import checked_lengths
from keras_transformer.inference.exported import tokenizers_of
from keras_transformer.inference.generation_module import GenerationModule
from keras_transformer.inference.loading import refuse_precision, saved_model
from keras_transformer.inference.perplexity import rounded_perplexity
from keras_transformer.models import LanguageModel, sizes_of_description, translation_policy
from keras_transformer.runs.folder import RunFolder, named_run
from keras_transformer.runs.task_name import task_of
from keras_transformer.saved_models.session import read_meta_graph, reload
from pipelines import vocabularies

TASK = "language_modelling"


class Generator:
    """Continue texts, and compute how likely texts are.

    Args:
        generate: texts (B,) -> {"generated": texts (B,)}.
        score: texts (B,) -> {"log_probability": nats (B,), "tokens": integers (B,)}.
        lengths: a list of texts -> the tokens of each, its end included.
    """

    def __init__(
        self,
        generate: Callable[..., dict],
        score: Callable[..., dict],
        lengths: Callable[[list[str]], list[int]],
    ):
        self._generate = generate
        self._score = score
        self._lengths = lengths

    @classmethod
    def of(cls, module: GenerationModule) -> "Generator":
        """That of a live module."""
        return cls(module.generate, module.score, module.lengths)

    @classmethod
    def load(cls, path: str | os.PathLike, precision: str = "float32", **options) -> "Generator":
        """Load a language model.

        Args:
            path: a run's folder, a checkpoint in one, a SavedModel, or a folder of numbered
                versions of it.
            precision: of a run's weights, "float32" or "bfloat16".
            options: arguments of `DecodingOptions`, of a run.

        Raises:
            FileNotFoundError: if there is no model.
            ValueError: if it is damaged, no language model, or a SavedModel that is given options
                or a precision.
        """
        path = pathlib.Path(path)
        if version := saved_model(path):
            refuse_precision(version, precision)
            return cls(*_exported(version, options))
        return cls.of(module_of_run(named_run(path), precision, options))

    def generate(self, prompts: Sequence[str], at_once: int = 32) -> list[str]:
        """Continue prompts.

        Args:
            prompts: beginnings of texts; an empty one begins anew.
            at_once: how many go through the model together.

        Returns:
            Each prompt with what comes after it.

        Raises:
            ValueError: naming the first prompt that is longer than the model takes.
        """
        checked_lengths(self._lengths, prompts, remedy="Shorten it.")
        found = []
        for start in range(0, len(prompts), at_once):
            batch = tf.constant(list(prompts[start : start + at_once]))
            texts = self._generate(text=batch)["generated"].numpy()
            found.extend(text.decode(errors="replace") for text in texts)
        return found

    def perplexities(self, lines: Sequence[str], at_once: int = 64) -> dict:
        """exp(-log P / pieces) and exp(-log P / words) of lines, their ends counted in both.

        Args:
            lines: at least one.
            at_once: how many go through the model together.

        Returns:
            JSON: "lines", "pieces", "perplexity" and "perplexity_of_words"; None in place of a
            number that is too large, as of words that no spaces part.

        Raises:
            ValueError: naming the first line that is longer than the model takes.
        """
        checked_lengths(self._lengths, lines, remedy="Split it into several lines.")
        log_probability = 0.0
        pieces = 0
        for start in range(0, len(lines), at_once):
            scored = self._score(text=tf.constant(list(lines[start : start + at_once])))
            log_probability += float(tf.reduce_sum(tf.cast(scored["log_probability"], tf.float64)))
            pieces += int(tf.reduce_sum(scored["tokens"]))
        words = sum(len(line.split()) + 1 for line in lines)
        return {
            "lines": len(lines),
            "pieces": pieces,
            "perplexity": rounded_perplexity(-log_probability / pieces),
            "perplexity_of_words": rounded_perplexity(-log_probability / words),
        }


def module_of_run(
    folder: RunFolder, precision: str = "float32", options: Mapping[str, Any] | None = None
) -> GenerationModule:
    """The module of a run's language model.

    Args:
        folder: the run.
        precision: see `Generator.load`.
        options: arguments of `DecodingOptions`.

    Raises:
        FileNotFoundError: if there is no run, or nothing trained.
        ValueError: if it is of another task.
    """
    description = folder.read_description()
    if (task := task_of(description)) != TASK:
        raise ValueError(
            f"{folder.path} must be a language model, trained by --task={TASK}. Received: a run of "
            f"the task {task}."
        )
    given = GenerationModule.options_of(options or {})
    hyperparameters = folder.read_hyperparameters(sizes_of_description)
    model = LanguageModel(hyperparameters, dtype=translation_policy(precision))
    folder.load_weights(model)
    return GenerationModule(model, vocabularies.load(folder.path), given)


def _exported(version, options):
    if options:
        raise ValueError(
            f"{version} decodes as it was exported. Received: {', '.join(options)}. Leave it out, "
            "name the folder of the run, or export it again with it."
        )
    signatures = reload(version).signatures
    serve = signatures["serving_default"]
    if "generated" not in serve.structured_outputs:
        raise ValueError(
            f"{version} must be a language model, exported of a run of --task={TASK}. Received: a "
            f"SavedModel that gives {', '.join(serve.structured_outputs)}."
        )
    tokenizer, _ = tokenizers_of(read_meta_graph(version).graph_def, version, {})

    def lengths(lines):
        return [len(ids) + 1 for ids in tokenizer.encode(lines)]

    return serve, signatures["score"], lengths
