"""What --protect gives and costs on the default corpus: `python -m benchmarks.limits.protected_text
--protected=RUN --plain=RUN`, two runs of equal updates, one with `--markup=kept --protect=...`.

Prints BLEU of the test pairs without markup by both runs with sacrebleu's paired bootstrap, BLEU of
the test pairs with markup, the share of spans that come back once and verbatim and the share in the
order of the reference, and the time of protecting. Fails if a span is lost or invented.
"""

import collections
import sys
import time

import tensorflow as tf
from absl import app, flags

from benchmarks.tables import print_table
from keras_transformer.evaluation import bleu
from keras_transformer.evaluation.metrics import choose
from keras_transformer.evaluation.significance import compare
from keras_transformer.inference.translator import Translator
from pipelines.corpora import HomeAssistant
from pipelines.vocabularies.protected_spans import ProtectedSpans
from pipelines.vocabularies.span_marks import SpanMarks

PROTECTED = flags.DEFINE_string("protected", None, "Run trained with --protect.", required=True)
PLAIN = flags.DEFINE_string("plain", None, "Run trained without.", required=True)
SENTENCES = (
    "Hello {name}, you have {count} new messages.",
    "Visit https://www.home-assistant.io/docs for more information.",
    "Set to %s on %(date)s",
    "Send the report to admin@example.com.",
    "You have 12345 unread notifications from 2024-05-17.",
    "TURN OFF THE LIGHTS",
    "Turn of the ligths",
)
TIMES = 20


def spans_of(marks, texts):
    """The spans of each text, in order."""
    found = marks.marked(tf.constant(texts, tf.string)).spans
    return [[one.decode() for one in row] for row in found.to_list()]


def seconds_a_sentence(marks, texts):
    """How long hiding and putting back takes."""
    given = tf.constant(texts, tf.string)

    @tf.function
    def there_and_back(text):
        marked = marks.marked(text)
        return marks.put_back(marked.text, marked)

    there_and_back(given)
    began = time.perf_counter()
    for _ in range(TIMES):
        there_and_back(given)
    return (time.perf_counter() - began) / TIMES / len(texts)


def main(_):
    protected, plain = (Translator.load(path.value) for path in (PROTECTED, PLAIN))
    marks = SpanMarks(ProtectedSpans.in_description(protected.description))
    simple = HomeAssistant(markup="dropped").load().test
    marked = HomeAssistant(markup="alone").load().test
    ours, before = (one.translate(simple.sources) for one in (protected, plain))
    [compared] = compare(choose(["bleu"], None), before, ours, simple.targets).values()
    translated = protected.translate(marked.sources)
    given, came, meant = (
        spans_of(marks, texts) for texts in (marked.sources, translated, marked.targets)
    )
    # Line breaks that come to stand beside each other look like one span.
    counters = [
        [collections.Counter("\0".join(spans).replace("\n", "\0\n").split("\0")) for spans in rows]
        for rows in (given, came)
    ]
    lost = [
        pair
        for pair, *both in zip(zip(marked.sources, translated, strict=True), *counters, strict=True)
        if both[0] != both[1]
    ]
    # A reference that changed the spans itself has no order to compare with.
    alike = [
        (one, other)
        for one, other in zip(came, meant, strict=True)
        if sorted(one) == sorted(other) and len(one) > 1
    ]
    in_order = sum(one == other for one, other in alike)
    spans = sum(map(len, given))
    print_table(
        ["what", "with --protect", "without"],
        [
            [
                f"BLEU of {len(simple)} lines without markup (p {compared['p_value']:.3f})",
                f"{compared['score']}",
                f"{compared['baseline']}",
            ],
            [
                f"BLEU of {len(marked)} lines with markup",
                *(
                    f"{bleu.score(texts, marked.targets)['bleu']}"
                    for texts in (translated, plain.translate(marked.sources))
                ),
            ],
            [f"lines whose {spans} spans came back", f"{len(marked) - len(lost)}", ""],
            [f"{len(alike)} lines of several spans in order", f"{in_order}", ""],
            ["ms a sentence", f"{1000 * seconds_a_sentence(marks, marked.sources):.3f}", ""],
        ],
    )
    rows = zip(SENTENCES, *(one.translate(SENTENCES) for one in (plain, protected)), strict=True)
    print_table(["given", "without", "with --protect"], rows)
    if lost:
        sys.exit(f"WRONG: {lost[:5]}")


if __name__ == "__main__":
    app.run(main)
