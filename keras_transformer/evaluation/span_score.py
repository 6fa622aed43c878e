"""Precision, recall and F1 of spans, as CoNLL-2003 counts them (Tjong Kim Sang and De Meulder 2003,
"Introduction to the CoNLL-2003 Shared Task").
"""

from collections.abc import Sequence

OUTSIDE = "O"


def spans_of(tags: Sequence[str]) -> set[tuple[str, int, int]]:
    """Return the spans that tags mark: name, first word, and the word after the last. "B-NAME"
    begins a span; "I-NAME" continues one, or begins one after another name or "O"; "O" is outside.
    """
    spans = set()
    begin = 0
    before = ""
    for number, tag in enumerate([*tags, OUTSIDE]):
        name = "" if tag == OUTSIDE else tag[2:]
        if before and (tag.startswith("B-") or name != before):
            spans.add((before, begin, number))
            before = ""
        if name and not before:
            begin = number
        before = name
    return spans


def measure(predicted: Sequence[Sequence[str]], truth: Sequence[Sequence[str]]) -> dict:
    """Compare tags with the truth.

        precision = right / predicted,  recall = right / true,  F1 = 2 right / (predicted + true)

    A span is right if its name and both its ends are. Return the number of "words"; "accuracy", the
    share of words with the right tag; the number of "spans" of the truth; their "precision",
    "recall" and "f1" in percent; and "by_name", F1 of each name of the truth. Only "words" and
    "accuracy" are returned if the truth has tags that mark no spans.
    """
    pairs = list(zip(predicted, truth, strict=True))
    words = [pair for rows in pairs for pair in zip(*rows, strict=True)]
    right = sum(tag == true for tag, true in words)
    of_words = {"words": len(words), "accuracy": round(right / len(words), 4)}
    if any(true != OUTSIDE and true[:2] not in ("B-", "I-") for _, true in words):
        return of_words
    spans = [tuple(map(spans_of, rows)) for rows in pairs]
    names = sorted({name for _, true in spans for name, _, _ in true})
    shares = zip(("precision", "recall", "f1"), _shares(spans), strict=True)
    return {
        **of_words,
        "spans": sum(len(true) for _, true in spans),
        **dict(shares),
        "by_name": {name: _shares([_named(pair, name) for pair in spans])[-1] for name in names},
    }


def summary(measured: dict) -> str:
    """Format the scores of `measure` in lines."""
    of_words = f"{measured['accuracy']:.1%} of {measured['words']:,} words get their tag"
    if "f1" not in measured:
        return of_words
    worst = sorted(measured["by_name"].items(), key=lambda pair: pair[1])
    rows = [f"  {name}  {f1:.1f}" for name, f1 in worst]
    of_spans = (
        f"{measured['f1']:.2f} F1 of {measured['spans']:,} spans (precision "
        f"{measured['precision']:.2f}, recall {measured['recall']:.2f}); {of_words}"
    )
    return "\n".join([of_spans, *(["F1 by name"] if rows else []), *rows])


def _named(pair, name):
    return tuple({span for span in spans if span[0] == name} for spans in pair)


def _shares(spans):
    """Return precision, recall and F1 in percent; 0 where there are no spans."""
    right = sum(len(predicted & true) for predicted, true in spans)
    predictions = sum(len(predicted) for predicted, _ in spans)
    truths = sum(len(true) for _, true in spans)
    counts = (predictions, truths, (predictions + truths) / 2)
    return tuple(round(100 * right / count, 2) if count else 0.0 for count in counts)
