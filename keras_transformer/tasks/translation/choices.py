"""What the flags of translation say of its search, objective, pieces and embeddings."""

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
from pipelines.vocabularies.other_order import require_trainable
from pipelines.vocabularies.protected_spans import ProtectedSpans
from pipelines.vocabularies.segmentation import BpeDropout, Variation
from pipelines.vocabularies.subword_regularization import SubwordRegularization
from pipelines.vocabularies.vocabulary import Vocabulary

# By the flag that asks for it.
SEGMENTATIONS = {"bpe_dropout": BpeDropout, "subword_regularization": SubwordRegularization}


def scheduled_sampling(values: Mapping) -> ScheduledSampling | None:
    """The objective that --scheduled_sampling asks for; None: it asks for none."""
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
    """Refuse tables of embeddings that a vocabulary cannot have, and a start that these cannot."""
    tie_embeddings = values["tie_embeddings"]
    if not shares_ids and "source_embedding" not in TIES[tie_embeddings]:
        fitting = [name for name, tables in TIES.items() if "source_embedding" in tables]
        raise ValueError(
            f"vocabularies that are {kind} need --tie_embeddings={' or '.join(fitting)}: an id "
            f"means another piece in each language. Received: tie_embeddings={tie_embeddings}. "
            f"Pass --tie_embeddings={fitting[0]}."
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
    """The vocabulary of the run or SavedModel that --vocabulary_from names."""
    found = vocabulary_of(origin)
    require_trainable(found, origin, "Name another run, or leave --vocabulary_from out.")
    if lacking := sorted(set(tags) - set(found.source.pieces)):
        raise ValueError(
            f"the vocabulary of {origin} lacks the tags {', '.join(lacking[:5])} of this corpus. "
            "Pass --vocabulary_size, which learns another."
        )
    if found.protected != protected:
        raise ValueError(
            f"the vocabulary of {origin} protects other spans than these flags do. Pass --protect "
            "as that run did, or --vocabulary_size without --vocabulary_from to learn another."
        )
    return found


def refuse_other_vocabulary(
    folder: str | os.PathLike,
    vocabulary: Vocabulary | SeparateVocabularies,
    prepared: Vocabulary | SeparateVocabularies,
) -> None:
    """Refuse records that were not cut by a run's vocabulary."""
    if prepared.fingerprint != vocabulary.fingerprint:
        files = map(str, vocabularies.paths(vocabulary.kind, folder))
        raise ValueError(
            f"{folder} was trained with vocabulary {vocabulary.fingerprint}, the records are of "
            f"{prepared.fingerprint}. Name another --model_dir, or prepare the records with "
            f"--vocabulary={','.join(files)}."
        )


def tokenizer_of_run(folder: RunFolder, asked: str | None, language: str) -> str:
    """The tokenizer that a run's BLEU is counted with: all its life the same, so that --keep_best
    compares numbers of one scale. A run of 0.7 does not say it: there the default was 13a.

    A ValueError refuses another one, `asked` for where the run is resumed.
    """
    if not folder.is_started:
        return tokenizer_of(language, asked)
    before = folder.read_description().get("evaluation", {}).get("tokenize")
    if asked and before and asked != before:
        raise ValueError(
            f"--tokenize must be {before}, as BLEU was counted in {folder.path} so far. Received: "
            f"{asked}. Leave it out; evaluate --tokenize={asked} counts the other."
        )
    kept = asked or before or "13a"
    if kept != tokenizer_of(language, asked or before):
        print(
            f"BLEU is counted with the tokenizer {kept} as before, so that --keep_best compares "
            f"numbers of one scale; evaluate counts it with {tokenizer_of(language)}"
        )
    return kept


def variations(
    values: Mapping, upper_targets: bool = True
) -> Callable[[Vocabulary | SeparateVocabularies], dict[str, Variation]]:
    """How the sentences that are trained on are changed, as --augment says, and cut, as one of the
    flags in `SEGMENTATIONS` says: a function of the vocabulary that gives it by "source" and
    "target". `upper_targets` says whether the target of a source in upper case is too.
    """
    augmented = Augmentation.of(values)
    asked = {name: values[name] for name in SEGMENTATIONS if values[name]}
    if len(asked) > 1:
        received = ", ".join(f"{name}={value}" for name, value in asked.items())
        raise ValueError(
            f"--{' and --'.join(asked)} exclude each other: a vocabulary is of byte pairs or a "
            f"unigram language model. Received: {received}. Leave one out."
        )
    changing = {
        "augment": ",".join(augmented.augment),
        "glossary_rate": values.get("glossary_rate"),
        **asked,
    }
    for name, value in changing.items():
        if value and values["static_shapes"]:
            raise ValueError(
                f"--{name} gives sentences of any length, and --static_shapes wants few. "
                f"Received: {name}={value}. Leave one out."
            )
    rates = augmented.rates
    share = augmented.augmented_share

    def of_sides(vocabulary):
        sides = {"source": vocabulary.source, "target": vocabulary.target}
        cut = {
            one: SEGMENTATIONS[name](one, value, values["seed"])
            for name, value in asked.items()
            for one in set(sides.values())
        }
        if not rates:
            return {side: cut[one] for side, one in sides.items() if one in cut}
        longest = values["max_train_length"]
        of_target = rates if upper_targets else {}
        return {
            side: AugmentedText(
                one, of_side, values["seed"], longest, side == "source", cut.get(one), share
            )
            for (side, one), of_side in zip(sides.items(), (rates, of_target), strict=True)
        }

    return of_sides
