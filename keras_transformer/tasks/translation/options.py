"""Options of translators and parsers (Vaswani et al. 2017, sections 5 and 6)."""

from keras_transformer.evaluation.options import Tokenizer
from keras_transformer.runs.options import is_above_0
from keras_transformer.saved_models.options import ExportPrecision, Format
from keras_transformer.tasks.options import OF_PAIRS, SEARCH, Registered
from pipelines.options import FIXED, REPORTED, Options, option
from pipelines.vocabularies.protected_spans import ProtectedSpans

AUGMENTED = ("case", "typos", "punctuation")


def _rate_of(kind):
    """Return what the options of all rates share: each needs its kind in --augment."""
    return {
        "at_least": 0,
        "at_most": 1,
        "only": {"augment": lambda kinds: kind in kinds.split(",")},
        "only_words": f"--augment={kind}",
    }


class Augmentation(Options):
    """Augmentation."""

    resumed = REPORTED

    augment: tuple[str, ...] = option(
        (),
        "Changes to the sources that imitate how people type, drawn anew each time: some choices, "
        "joined by commas. Default: none.",
        choices=AUGMENTED,
        on_tensorflow=True,
    )
    case_rate: float = option(
        0.15,
        "Share of sentences in upper case, in lower case or with a capital for each word. A "
        "source in upper case has a translation in upper case.",
        **_rate_of("case"),
    )
    typo_rate: float = option(
        0.01,
        "Share of letters that are missed, doubled, swapped, or typed on the next key.",
        **_rate_of("typos"),
    )
    punctuation_rate: float = option(
        0.1,
        "Share of the marks of punctuation that are missing or doubled.",
        **_rate_of("punctuation"),
    )
    augmented_share: float = option(
        1.0,
        "Share of the sentences that --augment changes at these rates, drawn anew each time; the "
        "others are read as they stand.",
        at_least=0,
        at_most=1,
    )
    bpe_dropout: float = option(
        0.0,
        "Probability that a merge of two pieces is left out when a sentence is trained on, so "
        "that it is cut into other pieces each time; 0: never. Its authors take 0.1.",
        at_least=0,
        at_most=0.99,
        on_tensorflow=True,
    )
    subword_regularization: float = option(
        0.0,
        "Power alpha of the probabilities by which a sentence's pieces are drawn each time it "
        "is trained on, with --vocabulary_model=unigram; 0: the likeliest pieces are always "
        "taken. Its author takes 0.1 to 0.5.",
        at_least=0,
        at_most=100,
        on_tensorflow=True,
    )
    scheduled_sampling: float = option(
        0.0,
        "Final probability that the decoder reads the model's own prediction in place of a "
        "target token; 0: never.",
        at_least=0,
        at_most=0.99,
        on_tensorflow=True,
    )
    scheduled_sampling_steps: int = option(
        10000,
        "Steps in which the probability of --scheduled_sampling rises from 0.",
        at_least=1,
        only={"scheduled_sampling": is_above_0},
        only_words="--scheduled_sampling above 0",
    )


class EmbeddingStart(Options):
    """Start of the embeddings."""

    embedding_initialization: str = option(
        "drawn",
        "How the table of embeddings starts. drawn: at random. cooccurrence: pieces that occur "
        "in the same pairs get similar embeddings, which saves about an epoch of a short run.",
        choices=("drawn", "cooccurrence"),
        resumed=FIXED,
    )


class ValidationSearch(Options):
    """Validation."""

    validation_sentences: int = option(
        500,
        "Number of sentences to translate for BLEU, or to parse for F1, after each epoch; 0: "
        "none. This search is greedy.",
        at_least=0,
        resumed=REPORTED,
    )


OF_TRANSLATORS = (*OF_PAIRS, EmbeddingStart, Augmentation, ValidationSearch)
TASKS = {
    "translation": Registered(
        "Translation",
        "to translate sentences",
        place=1,
        options=(*OF_TRANSLATORS, ProtectedSpans, SEARCH, Tokenizer),
        export_options=(SEARCH, ExportPrecision, Format),
        makes_sentences=True,
    )
}
