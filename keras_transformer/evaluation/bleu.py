"""BLEU (Papineni et al. 2002), the paper's measure, and chrF, by sacrebleu."""

import re
from collections.abc import Sequence

import sacrebleu

from keras_transformer.evaluation.metrics import bleu_of

# A full stop, a comma or an 's that stands alone; Moses' entities and hyphens; subword marks.
TRACES = re.compile(
    r"(?<=\S) (?:[.,]|'s)(?=\s|$)|@-@|@@(?= |$)|##AT##|&(?:apos|quot|amp|lt|gt|#\d+);"
)
# Measured on Multi30k and Home Assistant: 95 to 99 % of lines that are tokenized have a trace, and
# at most 0.1 % of others.
MANY = 0.1


def score(hypotheses, references, tokenize="13a"):
    """Corpus BLEU and chrF of cased text, one reference a sentence, in points out of 100, with the
    number of sentences and signatures that say how they were counted.
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
    """The `warning`; a ValueError, before a training starts, if the tokenizer is not installed."""
    told = warning(references, tokenize)
    bleu_of(tokenize)
    return told


def warning(references: Sequence[str], tokenize: str) -> str | None:
    """A warning for references that look tokenized already, and are scored with a tokenizer."""
    found = [line for line in references if TRACES.search(line)]
    share = len(found) / len(references)
    if tokenize == "none" or share < MANY:
        return None
    return (
        f"{share:.0%} of the references look tokenized, such as {found[0]!r}. BLEU with the "
        f"tokenizer {tokenize} then equals neither that of detokenized text nor published figures "
        "of tokenized text. Pass --tokenize=none for the latter."
    )
