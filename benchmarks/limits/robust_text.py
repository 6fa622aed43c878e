"""What --augment and --protect give and cost on the default corpus: `python -m
benchmarks.limits.robust_text --runs=RUN,RUN`, runs of equal updates with and without it.

Prints for each run BLEU of the test pairs as they stand, and of the same sources in upper case
(beside references in upper case), in lower case, with one typing error a sentence, and without
their punctuation; of the pairs with markup BLEU, and how many have all spans back once and
verbatim.
"""

import collections
import random
import re

from absl import app, flags

from benchmarks.tables import print_table
from keras_transformer.evaluation import metrics
from keras_transformer.inference.translator import Translator
from pipelines.corpora import HomeAssistant
from pipelines.vocabularies.protected_spans import ProtectedSpans, TextMarks

RUNS = flags.DEFINE_list("runs", None, "Runs to compare.", required=True)
SENTENCES = flags.DEFINE_integer("sentences", None, "Lines to translate. Default: all.")
SEED = 1


def mistyped(line, generator):
    """A line with one letter missed, doubled or swapped; as it is if it has no two in a row."""
    places = [match.start() + 1 for match in re.finditer(r"(?=[^\W\d_]{2})", line)]
    if not places:
        return line
    at = generator.choice(places)
    slips = (
        line[:at] + line[at + 1 :],
        line[:at] + line[at] + line[at:],
        line[: at - 1] + line[at] + line[at - 1] + line[at + 1 :],
    )
    return generator.choice(slips)


def first_of(markup):
    """The first sources and references of the test split."""
    test = HomeAssistant(markup=markup).load().test
    return test.sources[: SENTENCES.value], test.targets[: SENTENCES.value]


def with_spans_back(description, sources, translations):
    """How many sentences have the spans of their sources, if the run protects any."""
    protected = ProtectedSpans.in_description(description)
    if protected is None:
        return ""
    marks = TextMarks(protected)
    # Line breaks that come to stand beside each other look like one span.
    expected, actual = (
        ["\0".join(marks.marked(line).spans).replace("\n", "\0\n").split("\0") for line in lines]
        for lines in (sources, translations)
    )
    bags = (map(collections.Counter, spans) for spans in (expected, actual))
    whole = sum(source == target for source, target in zip(*bags, strict=True))
    return f"{whole} of {len(expected)}"


def main(_):
    sources, targets = first_of("dropped")
    markup, references_of_markup = first_of("alone")
    generator = random.Random(SEED)
    kinds = {
        "as they stand": (sources, targets),
        "upper case": ([line.upper() for line in sources], [line.upper() for line in targets]),
        "lower case": ([line.lower() for line in sources], targets),
        "one typing error": ([mistyped(line, generator) for line in sources], targets),
        "no punctuation": ([re.sub("[.,;:!?]", "", line) for line in sources], targets),
    }
    rows = []
    for path in RUNS.value:
        translator = Translator.load(path)
        scores = [
            metrics.score(translator.translate(texts), references)["bleu"]
            for texts, references in kinds.values()
        ]
        translations = translator.translate(markup)
        back = with_spans_back(translator.description, markup, translations)
        of_markup = metrics.score(translations, references_of_markup)["bleu"]
        rows.append([path, *scores, of_markup, back])
    print_table(["run", *kinds, "with markup", "spans back"], rows)


if __name__ == "__main__":
    app.run(main)
