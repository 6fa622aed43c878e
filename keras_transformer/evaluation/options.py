"""Flags of the commands that measure translations (Vaswani et al. 2017, section 6.1)."""

from pipelines.options import REPORTED, Options, option

OF_BLEU = ("bleu", "bleu_intl", "bleu_lc", "bleu_language", "bleu_compounds")


class ScoringOptions(Options):
    """Scoring."""

    split: str = option(
        "test",
        "Split to evaluate of the corpus that the model was trained on.",
        choices=("train", "valid", "test"),
    )
    metrics: tuple[str, ...] | None = option(
        None,
        "Metrics to print, joined by commas: bleu_lc is lower-cased, bleu_language has the "
        "tokenizer of the target language, bleu_compounds is the paper's. Default: all; for "
        "languages without spaces between words, those that need none.",
        choices=(*OF_BLEU, "chrf", "chrf++", "ter"),
        at_least=1,
    )
    confidence: bool = option(
        False, "Print 95 % intervals, by 1,000 bootstrap resamples of the sentences."
    )
    baseline_file: str | None = option(
        None,
        "File of another system's translations, line by line, to test the difference for "
        "significance.",
        path=True,
    )
    significance: str = option(
        "bootstrap",
        "Paired test of the difference from --baseline_file.",
        choices=("bootstrap", "approximate_randomization"),
    )


class Tokenizer(Options):
    """Tokenizer of BLEU."""

    tokenize: str | None = option(
        None,
        "Tokenizer of sacrebleu for BLEU. none: for text that is tokenized already. Default: by "
        "the target language: zh for Chinese; char for Japanese, Korean, Thai, Lao, Khmer, Burmese "
        "and other languages without spaces between words; 13a for the rest. A run that is resumed "
        "keeps its own.",
        choices=("13a", "intl", "none", "char", "zh", "ja-mecab", "ko-mecab"),
        resumed=REPORTED,
    )


class TuningOptions(Options):
    """Tuning."""

    needs = (("task", ("translation", "parsing")),)

    beam_sizes: tuple[str, ...] = option(
        ("1", "2", "4", "8"), "Beam sizes to try, joined by commas."
    )
    length_penalties: tuple[str, ...] = option(
        ("0", "0.2", "0.4", "0.6", "0.8", "1.0"),
        "Exponents of the length penalty to try, joined by commas.",
    )
    sentences: int = option(
        500, "How many of the first validation sentences to translate; 0: all.", at_least=0
    )


class TreeScoring(Options):
    """Scoring of trees."""

    needs = (("task", ("parsing",)),)
    evalb_parameters: str | None = option(
        None,
        "EVALB's parameter file to score trees with. Default: the values of COLLINS.prm.",
        path=True,
    )


class Files(Options):
    """Files."""

    source_file: str | None = option(
        None, "File of source lines. It needs --reference_file.", path=True
    )
    reference_file: str | None = option(
        None,
        "File of the translations of --source_file, line by line. For a parser, a file of "
        "trees; for a language model, of texts.",
        path=True,
    )
