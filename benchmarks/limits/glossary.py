"""What a glossary does to the translations of a run that protects spans: `python -m
benchmarks.limits.glossary --model=RUN`.

The terms are words whose translation the training text says alone, and always the same. As in Dinu
et al. 2019, a term is given for a test sentence if source and reference have it. Prints the share
of terms that appear, and BLEU of these sentences, without and with the glossary.
"""

import collections
import re

from absl import app, flags

from benchmarks.tables import print_table
from keras_transformer.evaluation import bleu
from keras_transformer.inference.translator import Translator
from pipelines.corpora import HomeAssistant
from pipelines.glossary import Glossary
from pipelines.vocabularies.protected_spans import ProtectedSpans

MODEL = flags.DEFINE_string("model", None, "Run trained with --protect.", required=True)
SHORTEST = 4


def terms_of(text):
    """Translation by word, of pairs of one word each."""
    found = collections.defaultdict(set)
    for source, target in zip(text.sources, text.targets, strict=True):
        if source.isalpha() and target.isalpha() and len(source) >= SHORTEST:
            found[source].add(target)
    return {source: targets.pop() for source, targets in found.items() if len(targets) == 1}


def words(text):
    return set(re.findall(r"\w+", text))


def main(_):
    translator = Translator.load(MODEL.value)
    protected = ProtectedSpans.in_description(translator.description)
    corpus = HomeAssistant(markup="kept").load()
    terms = terms_of(corpus.train)
    rows = []
    for source, target in zip(corpus.test.sources, corpus.test.targets, strict=True):
        of_line = {one: terms[one] for one in words(source) if terms.get(one) in words(target)}
        marked = Glossary(of_line, protected).applied(source) if of_line else source
        if marked != source:
            rows.append((source, marked, target, [*of_line.values()]))
    sources, marked, targets, given = zip(*rows, strict=True)
    table = []
    for name, lines in (("without", sources), ("with", marked)):
        came = translator.translate(lines)
        appear = sum(term in line for line, some in zip(came, given, strict=True) for term in some)
        score = bleu.score(came, targets)["bleu"]
        table.append([name, f"{appear} of {sum(map(len, given))}", f"{score}"])
    print_table(["glossary", "terms that appear", f"BLEU of {len(rows)} sentences"], table)


if __name__ == "__main__":
    app.run(main)
