"""A corpus whose protected spans are replaced by marks: see `span_marks`."""

import dataclasses
from typing import NamedTuple

import numpy as np

from pipelines.corpora.parallel_text import Corpus, ParallelText
from pipelines.corpora.record_files import Records
from pipelines.dropped import Dropped
from pipelines.vocabularies.protected_spans import ProtectedSpans
from pipelines.vocabularies.span_marks import SpanMarks

REASON = "with unequal protected spans"


class ProtectedText(NamedTuple):
    """A corpus without the training and validation pairs whose sides have unequal spans: as people
    read it; and these two splits as the model reads them.
    """

    corpus: Corpus
    train: ParallelText
    valid: ParallelText


def protect(corpus: Corpus, protected: ProtectedSpans, strict: bool) -> ProtectedText:
    """Replace spans by marks. Pairs with unequal spans are counted, or refused if `strict`."""
    if isinstance(corpus.train, Records):
        raise ValueError(
            "--protect and --glossary_rate read text. Received: corpus=records, which holds ids. "
            "Train on the text itself."
        )
    marks = SpanMarks(protected)
    for tag, (marked, *_) in zip(
        corpus.tags, marks.marked_pairs(corpus.tags, corpus.tags), strict=True
    ):
        if tag != marked:
            raise ValueError(
                f"--protect would take the tag {tag} of the mixture for markup. Call it "
                "otherwise, such as <2de>, or leave out that kind."
            )
    dropped = Dropped(corpus.dropped, strict)
    changed = {}
    texts = {}
    for split in ("train", "valid"):
        text = getattr(corpus, split)
        rows = list(marks.marked_pairs(text.sources, text.targets))
        keep = np.array([agree for *_, agree in rows], bool)
        for index in np.flatnonzero(~keep):
            dropped.leave_out(REASON, text.place(index, f"the {split} split"))
        if not keep.any():
            raise ValueError(
                f"no pair of the {split} split has the same protected spans on both sides. Check "
                "--protect and --protect_pattern."
            )
        changed[split] = text if keep.all() else text.where(keep)
        texts[split] = ParallelText.from_pairs(row[:2] for row in rows if row[2])
        if split == "train" and corpus.weights is not None:
            changed["weights"] = corpus.weights[keep]
    return ProtectedText(dataclasses.replace(corpus, **changed, dropped=dropped), **texts)
