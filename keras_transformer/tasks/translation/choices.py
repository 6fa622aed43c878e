"""Choices of translation by flags: objective, vocabulary, tokenizer of BLEU, and augmentation."""

import os
from collections.abc import Callable, Mapping, Sequence

from keras_transformer.evaluation.metrics import tokenizer_of
from keras_transformer.models.variants import TIES
from keras_transformer.runs.folder import RunFolder
from keras_transformer.tasks.text_task import vocabulary_of
from keras_transformer.tasks.translation.options import Augmentation
from keras_transformer.training.objective import ScheduledSampling
from pipelines import vocabularies
from pipelines.batches.texts import check_pieces
from pipelines.vocabularies import SeparateVocabularies
from pipelines.vocabularies.augmentation import AugmentedText
from pipelines.vocabularies.options import is_text
from pipelines.vocabularies.other_order import require_trainable
from pipelines.vocabularies.protected_spans import ProtectedSpans
from pipelines.vocabularies.segmentation import BpeDropout, Variation
from pipelines.vocabularies.subword_regularization import SubwordRegularization
from pipelines.vocabularies.vocabulary import Vocabulary

# By their flags, and the --vocabulary_model that each needs.
SEGMENTATIONS = {"bpe_dropout": BpeDropout, "subword_regularization": SubwordRegularization}
MODELS = {"bpe_dropout": "bpe", "subword_regularization": "unigram"}


def scheduled_sampling(values: Mapping) -> ScheduledSampling | None:
    """Return the objective of --scheduled_sampling, or None if that is 0."""
    probability = values["scheduled_sampling"]
    if not probability:
        return None
    if values["r_drop"]:
        raise ValueError(
            "--r_drop and --scheduled_sampling exclude each other: both need two passes of their "
            f"own. Received: {values['r_drop']} and {probability}. Leave one out."
        )
    return ScheduledSampling(probability, values["scheduled_sampling_steps"])


def check_vocabulary(values: Mapping, kind: str, shares_ids: bool, vocabulary_size: int) -> None:
    """Refuse --tie_embeddings and --embedding_initialization that do not fit the vocabulary."""
    tie_embeddings = values["tie_embeddings"]
    if not shares_ids and "source_embedding" not in TIES[tie_embeddings]:
        choices = [name for name, tables in TIES.items() if "source_embedding" in tables]
        raise ValueError(
            f"vocabularies that are {kind} need --tie_embeddings={' or '.join(choices)}: an id "
            f"means another piece in each language. Received: tie_embeddings={tie_embeddings}. "
            f"Pass --tie_embeddings={choices[0]}."
        )
    start = values["embedding_initialization"]
    if start == "drawn" or values["init_from"]:
        return
    if values["distribution"] == "multi_worker":
        raise ValueError(
            f"--embedding_initialization={start} computes a table of embeddings, which several "
            f"machines may round differently. Received: --distribution=multi_worker. Pass "
            "--embedding_initialization=drawn."
        )
    check_pieces(2 * vocabulary_size if kind == "separate" else vocabulary_size)


def vocabulary_with(
    origin: str, tags: Sequence[str], protected: ProtectedSpans | None
) -> Vocabulary | SeparateVocabularies:
    """Load the vocabulary of --vocabulary_from, which must have these tags and protected spans."""
    vocabulary = vocabulary_of(origin)
    require_trainable(vocabulary, origin, "Name another run, or leave --vocabulary_from out.")
    if lacking := sorted(set(tags) - set(vocabulary.source.pieces)):
        raise ValueError(
            f"the vocabulary of {origin} lacks the tags {', '.join(lacking[:5])} of this corpus. "
            "Pass --vocabulary_size, which learns another."
        )
    if vocabulary.protected != protected:
        raise ValueError(
            f"the vocabulary of {origin} protects other spans than these flags do. Pass --protect "
            "as that run did, or --vocabulary_size without --vocabulary_from to learn another."
        )
    return vocabulary


def refuse_other_vocabulary(
    folder: str | os.PathLike,
    vocabulary: Vocabulary | SeparateVocabularies,
    prepared: Vocabulary | SeparateVocabularies,
) -> None:
    """Refuse records that were tokenized by another vocabulary than the run's."""
    if prepared.fingerprint != vocabulary.fingerprint:
        files = map(str, vocabularies.paths(vocabulary.kind, folder))
        raise ValueError(
            f"{folder} was trained with vocabulary {vocabulary.fingerprint}, the records are of "
            f"{prepared.fingerprint}. Name another --model_dir, or prepare the records with "
            f"--vocabulary={','.join(files)}."
        )


def tokenizer_of_run(folder: RunFolder, tokenize: str | None, language: str) -> str:
    """Return the tokenizer of a run's BLEU. It stays the same when the run is resumed, so that
    --keep_best compares like with like. Runs of 0.6 do not name it: their default was 13a.

    A ValueError refuses another --tokenize for a run that is resumed.
    """
    if not folder.is_started:
        return tokenizer_of(language, tokenize)
    before = folder.read_description().get("evaluation", {}).get("tokenize")
    if tokenize and before and tokenize != before:
        raise ValueError(
            f"--tokenize must be {before}, as BLEU was counted in {folder.path} so far. Received: "
            f"{tokenize}. Leave it out; evaluate --tokenize={tokenize} counts the other."
        )
    tokenizer = tokenize or before or "13a"
    if tokenizer != tokenizer_of(language, tokenize or before):
        print(
            f"BLEU is counted with the tokenizer {tokenizer} as before, so that --keep_best "
            f"compares numbers of one scale; evaluate counts it with {tokenizer_of(language)}"
        )
    return tokenizer


def variations(
    values: Mapping, upper_targets: bool = True
) -> Callable[[Vocabulary | SeparateVocabularies], dict[str, Variation]]:
    """Return a function of the vocabulary that gives for "source" and "target" how sentences are
    changed in training, by --augment, and cut into pieces, by one of the flags in `SEGMENTATIONS`.
    `upper_targets` says whether the target of a source in upper case is in upper case too.
    """
    augmentation = Augmentation.of(values)
    flags = {name: values[name] for name in SEGMENTATIONS if values[name]}
    if len(flags) > 1:
        received = ", ".join(f"{name}={value}" for name, value in flags.items())
        raise ValueError(
            f"--{' and --'.join(flags)} exclude each other: a vocabulary is of byte pairs or a "
            f"unigram language model. Received: {received}. Leave one out."
        )
    changing = {
        "augment": ",".join(augmentation.augment),
        "glossary_rate": values.get("glossary_rate"),
        **flags,
    }
    for name, value in changing.items():
        if value and values["static_shapes"]:
            raise ValueError(
                f"--{name} gives sentences of any length, and --static_shapes wants few. "
                f"Received: {name}={value}. Leave one out."
            )
    is_learned = is_text(values["corpus"]) and not values["vocabulary_from"]
    for name in flags:
        if is_learned and values["vocabulary_model"] != MODELS[name]:
            raise ValueError(
                f"--{name} needs --vocabulary_model={MODELS[name]}. Received: "
                f"{values['vocabulary_model']}. Change it, or leave --{name} out."
            )
    rates_of_all = {
        "case": augmentation.case_rate,
        "typos": augmentation.typo_rate,
        "punctuation": augmentation.punctuation_rate,
    }
    rates = {kind: rates_of_all[kind] for kind in augmentation.augment}
    share = augmentation.augmented_share

    def of_sides(vocabulary):
        sides = {"source": vocabulary.source, "target": vocabulary.target}
        cuts = {
            side: SEGMENTATIONS[name](side, value, values["seed"])
            for name, value in flags.items()
            for side in set(sides.values())
        }
        if not rates:
            return {name: cuts[side] for name, side in sides.items() if side in cuts}
        longest = values["max_train_length"]
        of_target = rates if upper_targets else {}
        return {
            name: AugmentedText(
                side, of_side, values["seed"], longest, name == "source", cuts.get(side), share
            )
            for (name, side), of_side in zip(sides.items(), (rates, of_target), strict=True)
        }

    return of_sides
