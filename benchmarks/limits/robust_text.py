"""What --augment gives and costs on the default corpus: `python -m benchmarks.limits.robust_text
--runs=RUN,RUN`, runs of equal updates with and without it.

Prints for each run BLEU of the test pairs as they stand, and of the same sources in upper case
(beside references in upper case), in lower case, with one typing error a sentence, and without
their punctuation; and what each run makes of two sentences of docs/protected_text.md.
"""

import random
import re

from absl import app, flags

from benchmarks.tables import print_table
from keras_transformer.evaluation import bleu
from keras_transformer.inference.translator import Translator
from pipelines.corpora import HomeAssistant

RUNS = flags.DEFINE_list("runs", None, "Runs to compare.", required=True)
SENTENCES = flags.DEFINE_integer("sentences", 0, "Lines to translate; 0: all.")
SHOWN = ("TURN OFF THE LIGHTS", "Turn of the ligths")
SEED = 1


def mistyped(line, drawn):
    """A line with one letter missed, doubled or swapped; as it is if it has no two in a row."""
    places = [match.start() + 1 for match in re.finditer(r"(?=[^\W\d_]{2})", line)]
    if not places:
        return line
    at = drawn.choice(places)
    slips = (
        line[:at] + line[at + 1 :],
        line[:at] + line[at] + line[at:],
        line[: at - 1] + line[at] + line[at - 1] + line[at + 1 :],
    )
    return drawn.choice(slips)


def main(_):
    test = HomeAssistant().load().test
    count = SENTENCES.value or len(test)
    sources = test.sources[:count]
    targets = test.targets[:count]
    drawn = random.Random(SEED)
    kinds = {
        "as they stand": (sources, targets),
        "upper case": ([line.upper() for line in sources], [line.upper() for line in targets]),
        "lower case": ([line.lower() for line in sources], targets),
        "one typing error": ([mistyped(line, drawn) for line in sources], targets),
        "no punctuation": ([re.sub("[.,;:!?]", "", line) for line in sources], targets),
    }
    rows = []
    for path in RUNS.value:
        translator = Translator.load(path)
        scores = [
            bleu.score(translator.translate(texts), references)["bleu"]
            for texts, references in kinds.values()
        ]
        rows.append([path, *scores])
        for sentence, translation in zip(SHOWN, translator.translate(list(SHOWN)), strict=True):
            print(f"{path}: {sentence} -> {translation}")
    print_table(["run", *kinds], rows)


if __name__ == "__main__":
    app.run(main)
