"""BLEU (Papineni et al. 2002), the paper's measure, and chrF, by sacrebleu."""

import re
from collections.abc import Sequence

import sacrebleu

from keras_transformer.evaluation.metrics import bleu_of

# Traces of a tokenizer: a detached full stop, comma or 's; Moses' entities and hyphens; subword
# marks.
TRACES = re.compile(
    r"(?<=\S) (?:[.,]|'s)(?=\s|$)|@-@|@@(?= |$)|##AT##|&(?:apos|quot|amp|lt|gt|#\d+);"
)
# On Multi30k and Home Assistant 95 to 99 % of tokenized lines have a trace, others at most 0.1 %.
SUSPICIOUS_SHARE = 0.1


def score(hypotheses, references, tokenize="13a"):
    """Return corpus BLEU and chrF of cased text, one reference a sentence, in points out of 100,
    with their signatures and the number of sentences.
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


def warning(references: Sequence[str], tokenize: str) -> str | None:
    """Return a warning if references that look tokenized are to be tokenized again. A ValueError
    says that the tokenizer is not installed, before anything is trained or translated.
    """
    bleu_of(tokenize)
    tokenized = [line for line in references if TRACES.search(line)]
    share = len(tokenized) / len(references)
    if tokenize == "none" or share < SUSPICIOUS_SHARE:
        return None
    return (
        f"{share:.0%} of the references look tokenized, such as {tokenized[0]!r}. BLEU with the "
        f"tokenizer {tokenize} then equals neither that of detokenized text nor published figures "
        "of tokenized text. Pass --tokenize=none for the latter."
    )
