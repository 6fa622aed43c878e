"""What the heads of a run do, on text that it has not learned (Vaswani et al. 2017, appendix)."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from keras_transformer.inference.held_out_text import held_out_text
from keras_transformer.inference.loading import module_of
from keras_transformer.inference.translator import Translator
from keras_transformer.models import Transformer
from keras_transformer.runs.task_name import task_of
from keras_transformer.visualization import head_ablation
from keras_transformer.visualization.attended import require_shares
from keras_transformer.visualization.bracket_trees import Phrases, agreement, by_chance, together
from keras_transformer.visualization.head_survey import Survey, survey
from keras_transformer.visualization.words import between_words, words_of
from pipelines.corpora import treebank
from pipelines.trees import plain
from pipelines.vocabularies import SeparateVocabularies
from pipelines.vocabularies.vocabulary import Vocabulary

IN_PHRASE = "in its phrase"


def text_of(
    description: Mapping, model: str, source_file: str | None, reference_file: str | None
) -> tuple[list[str], list[str]]:
    """The sentences that heads are measured on, and what the model should make of them: of the
    validation split, or of files. A parser's --reference_file holds the sentences too.

    Args:
        description: what the model is: its `model.json`.
        model: where it lies, for errors.
        source_file, reference_file: names of files, or None.

    Raises:
        ValueError: as `held_out_text`; naming a tree that is damaged, or a file without trees.
    """
    if task_of(description) != "parsing" or source_file or not reference_file:
        return held_out_text(description, model, "valid", source_file, reference_file)
    found = [tree for tree in map(plain, treebank.read_trees(reference_file)) if tree]
    if not found:
        raise ValueError(f"{reference_file} holds no tree with words. Name another file.")
    return [treebank.words_of(tree) for tree in found], [str(tree) for tree in found]


def measured(translator: Translator, sources: Sequence[str], references: Sequence[str]) -> Survey:
    """The measures of `head_survey` on pairs of sentences."""
    pairs = zip(sources, references, strict=True)
    return survey(translator.attention(*pair) for pair in pairs)


def agreement_with(translator: Translator, trees: Sequence[Phrases]) -> tuple[np.ndarray, float]:
    """How often the word that a word attends to most, besides itself, lies in the smallest
    constituent around it.

    Args:
        translator: the model; the encoder's heads are asked.
        trees: what `read_phrases` gives, of the language that is translated from.

    Returns:
        The share of the words of all trees (N, h), in [0, 1], and what it would be by chance.

    Raises:
        ValueError: if no tree has two words, or the vocabulary joins the words of all.
    """
    agreed = []
    expected = []
    for words, spans in trees:
        attention = translator.attention(" ".join(words), "")
        if "encoder" not in attention:
            raise ValueError(
                "--trees needs an encoder with self-attention, which this model has not. Leave it "
                "out."
            )
        found, numbers = words_of(attention["source_pieces"])
        # A vocabulary that normalizes text may join words or drop one.
        if len(found) != len(words) + 1 or len(words) < 2:
            continue
        require_shares(attention["encoder"], "encoder", "Leave --trees out.")
        weights = between_words(attention["encoder"], numbers, numbers)[..., :-1, :-1]
        belongs = together(len(words), spans)
        agreed.append(agreement(weights, belongs))
        expected.append(by_chance(belongs))
    if not agreed:
        raise ValueError(
            "--trees must hold trees of at least two words, which the model's vocabulary keeps "
            f"apart. Received: {len(trees):,} trees, none of these."
        )
    return np.concatenate(agreed, axis=-1).mean(axis=-1), float(np.concatenate(expected).mean())


def points_lost(
    trained: tuple[Transformer, Vocabulary | SeparateVocabularies, Mapping],
    path: str,
    sources: Sequence[str],
    quality: Callable[[Sequence[str]], float],
    options: Mapping,
) -> dict[str, np.ndarray]:
    """How much the quality falls without each head, by greedy search if `options` name no other.

    Args:
        trained: a run's model, vocabulary and description, of a translator or a parser.
        path: where the run lies, for errors.
        sources: sentences.
        quality: scores what the model makes of them.
        options: arguments of `DecodingOptions`.

    Returns:
        {stack: points (N, h)}.
    """
    model, vocabulary, description = trained
    search = {"beam_size": 1, **options}
    translator = Translator(module_of(model, vocabulary, description, path, search))
    return head_ablation.losses(model, lambda: quality(translator.translate(sources)))
