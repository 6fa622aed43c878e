"""BLEU (Papineni et al. 2002), the paper's measure, and chrF, by sacrebleu on detokenized text."""

import sacrebleu


def score(hypotheses, references):
    """Corpus BLEU and chrF of detokenized, cased text, one reference a sentence.

    Args:
        hypotheses: translations.
        references: what they should have been, as many.

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
    bleu = sacrebleu.BLEU()
    chrf = sacrebleu.CHRF()
    return {
        "bleu": round(bleu.corpus_score(hypotheses, [references]).score, 2),
        "chrf": round(chrf.corpus_score(hypotheses, [references]).score, 2),
        "bleu_signature": str(bleu.get_signature()),
        "chrf_signature": str(chrf.get_signature()),
        "sentences": len(references),
    }
