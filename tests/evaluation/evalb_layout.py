"""Scores of trees in EVALB's layout."""

from keras_transformer.evaluation.parseval import Status, compare, summarize
from pipelines.line_files import read_lines
from pipelines.trees import parse

HEADER = """  Sent.                        Matched  Bracket   Cross        Correct Tag
 ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy
============================================================================"""


def percent(part, whole):
    return 100 * part / whole if whole else 0.0


def line(number, sentence):
    recall = percent(sentence.matched, sentence.gold)
    precision = percent(sentence.matched, sentence.test)
    tagging = percent(sentence.tags, sentence.words)
    return (
        f"{number:4d} {sentence.length:4d} {sentence.status:4d}  {recall:6.2f} {precision:6.2f} "
        f"{sentence.matched:5d} {sentence.gold:6d} {sentence.test:4d} {sentence.crossing:6d} "
        f"{sentence.words:6d} {sentence.tags:5d}   {tagging:6.2f}"
    )


def total(sentences):
    """EVALB's line of sums, which has sentences without crossing brackets under "Cross"."""
    valid = [sentence for sentence in sentences if sentence.status == Status.VALID]
    sums = {
        name: sum(getattr(sentence, name) for sentence in valid)
        for name in ("matched", "gold", "test", "words", "tags")
    }
    summary = summarize(sentences)
    without = sum(sentence.crossing == 0 for sentence in valid)
    return (
        f"                {summary.recall:6.2f} {summary.precision:6.2f} {sums['matched']:6d} "
        f"{sums['gold']:6d} {sums['test']:4d} {without:6d}  {sums['words']:5d} {sums['tags']:5d}   "
        f"{summary.tagging:6.2f}"
    )


def block(title, sentences):
    summary = summarize(sentences)
    return f"""
-- {title} --
Number of sentence        = {summary.sentences:6d}
Number of Error sentence  = {summary.errors:6d}
Number of Skip  sentence  = {summary.skipped:6d}
Number of Valid sentence  = {summary.valid:6d}
Bracketing Recall         = {summary.recall:6.2f}
Bracketing Precision      = {summary.precision:6.2f}
Complete match            = {summary.complete:6.2f}
Average crossing          = {summary.average_crossing:6.2f}
No crossing               = {summary.no_crossing:6.2f}
2 or less crossing        = {summary.two_or_less_crossing:6.2f}
Tagging accuracy          = {summary.tagging:6.2f}"""


def report(sentences, cutoff):
    """All that EVALB prints."""
    short = [sentence for sentence in sentences if sentence.length <= cutoff]
    return "\n".join(
        [
            HEADER,
            *(line(number, sentence) for number, sentence in enumerate(sentences, 1)),
            "=" * 76,
            total(sentences),
            "=== Summary ===",
            block("All", sentences),
            block(f"len<={cutoff}", short),
        ]
    )


def trees_of(path):
    """The trees of a file, one a line; None for a line without one, such as "(())"."""
    return [parse(text) if text.strip("() ") else None for text in read_lines(path)]


def compared(gold, test, parameters):
    """The `Sentence` of each line of two files."""
    pairs = zip(trees_of(gold), trees_of(test), strict=True)
    return [compare(*pair, parameters) for pair in pairs]
