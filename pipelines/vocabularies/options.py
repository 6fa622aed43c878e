"""How the vocabulary is learned (Vaswani et al. 2017, section 5.1)."""

from pipelines.options import FIXED, Options, option


def is_text(corpus: str) -> bool:
    """Whether a corpus has no vocabulary of its own."""
    return corpus != "records"


LEARNED = {
    "only": {"corpus": is_text},
    "only_words": "a vocabulary that is learned, and --corpus=records has one: for any other "
    "--corpus",
}


class VocabularyOptions(Options):
    """Vocabulary."""

    vocabulary_size: int = option(
        37000,
        "Most pieces in the vocabulary; with --vocabularies=separate, in each of the two. A small "
        "text may give fewer. If it has more characters than fit, the rarest are spelled in bytes.",
        at_least=1,
        **LEARNED,
    )
    vocabularies: str = option(
        "joint",
        "Whether both languages share one vocabulary (joint), or each has its own (separate). "
        "The latter needs --tie_embeddings=decoder or none.",
        choices=("joint", "separate"),
        resumed=FIXED,
        **LEARNED,
    )
    vocabulary_model: str = option(
        "bpe",
        "How the pieces are learned: by byte-pair encoding, by a unigram language model, or as "
        "word pieces, where a text is cut into the longest ones from left to right.",
        choices=("bpe", "unigram", "word_piece"),
        resumed=FIXED,
        **LEARNED,
    )
