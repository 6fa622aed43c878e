"""BLEU as the paper counted it on English-German (Vaswani et al. 2017, section 6.1, table 2): of
tokenized text in which compounds are split, tensor2tensor's `get_ende_bleu`.
"""

import re

import sacrebleu

HYPHEN = re.compile(r"(\S)-(\S)")


def split_compounds(text: str) -> str:
    """Put spaces around each hyphen inside a word: "a-b" becomes "a ##AT##-##AT## b".

    Matches do not overlap, as in the paper's script: of "a-b-c" only the first hyphen is split,
    because b belongs to the first match; in "rich-text-format" both are.
    """
    return HYPHEN.sub(r"\1 ##AT##-##AT## \2", text)


class CompoundBLEU(sacrebleu.BLEU):
    """BLEU of text with split compounds, not smoothed, as multi-bleu.perl counts it.

    A split compound is three tokens where it was one, so that scores are higher than without
    (Post 2018, "A Call for Clarity in Reporting BLEU Scores"). The paper's script tokenizes with
    Moses' tokenizer.perl; `tokenize="none"` takes text that was tokenized by it.

    Args:
        tokenize: sacrebleu's tokenizer, which must leave hyphens inside words: "13a" or "none".
    """

    def __init__(self, tokenize: str = "13a"):
        super().__init__(tokenize=tokenize, smooth_method="none", force=True)
        self.tokenizer_signature += "+compounds"

    def _preprocess_segment(self, sent):
        return split_compounds(super()._preprocess_segment(sent))
