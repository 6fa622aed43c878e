"""BLEU (Papineni et al. 2002), the paper's measure, and chrF, by sacrebleu."""

import sacrebleu

from keras_transformer.evaluation import tokenized_text
from keras_transformer.evaluation.metrics import bleu_of


def score(hypotheses, references, tokenize="13a"):
    """Corpus BLEU and chrF of cased text, one reference a sentence.

    Args:
        hypotheses: translations.
        references: what they should have been, as many.
        tokenize: sacrebleu's tokenizer that BLEU is counted with; "none" of text that is tokenized.

    Returns:
        A dictionary: `bleu` and `chrf` in points out of 100, `bleu_signature` and `chrf_signature`
        that say how they were counted, `sentences`.

    Raises:
        ValueError: if their numbers differ, or there is none.
    """
    if len(hypotheses) != len(references) or not references:
        raise ValueError(
            f"BLEU needs one reference a hypothesis, at least one. Received: {len(hypotheses)} "
            f"and {len(references)}."
        )
    bleu = bleu_of(tokenize)
    chrf = sacrebleu.CHRF()
    return {
        "bleu": round(bleu.corpus_score(hypotheses, [references]).score, 2),
        "chrf": round(chrf.corpus_score(hypotheses, [references]).score, 2),
        "bleu_signature": str(bleu.get_signature()),
        "chrf_signature": str(chrf.get_signature()),
        "sentences": len(references),
    }


def doubt(references, tokenize):
    """A warning, before a training starts, about how its translations will be scored.

    Returns:
        One line if the references look tokenized and `tokenize` is not "none", else None.

    Raises:
        ValueError: if the tokenizer is not installed.
    """
    bleu_of(tokenize)
    return tokenized_text.warning(references, tokenize)
