"""A language model beside the best n-gram model of nltk on the same pieces: `python -m
benchmarks.language_model --model=runs/home_assistant_en`.

The n-grams are counted on the text that the run was trained on, in its pieces, and smoothed as
Kneser and Ney 1995 do (interpolated). Order and discount are chosen on the validation split itself,
which favours the n-grams. A text's end counts as a piece, for both.
"""

import collections
import functools
import math

from absl import app, flags
from nltk.lm import KneserNeyInterpolated
from nltk.lm.preprocessing import padded_everygram_pipeline
from nltk.lm.smoothing import KneserNey
from nltk.util import ngrams

from benchmarks.tables import print_table
from keras_transformer.inference.generator import Generator
from keras_transformer.runs.folder import RunFolder
from pipelines import corpora, vocabularies

MODEL = flags.DEFINE_string("model", None, "Folder of the run.", required=True)
ORDERS = flags.DEFINE_list("orders", ["2", "3", "4", "5"], "Orders of the n-grams.")
DISCOUNTS = flags.DEFINE_list(
    "discounts", ["0.5", "0.75", "0.9"], "What is taken off each count, in (0, 1)."
)

# Share of the probability that all pieces have alike.
UNSEEN = 1e-3


def pieces_of(lines, vocabulary):
    """Each line's pieces as strings, EOS left out: nltk adds its own."""
    ids = vocabulary.tokenize(lines).to_list()
    return [[vocabulary.pieces[number] for number in row[:-1]] for row in ids]


class Indexed(KneserNey):
    """nltk's own, which looks through all n-grams for each number: here they are counted once."""

    def __init__(self, vocabulary, counter, **kwargs):
        super().__init__(vocabulary, counter, **kwargs)
        self._found = {}

    def _continuation_counts(self, word, context=()):
        length = len(context) + 2
        if length not in self._found:
            self._found[length] = self._counted(length)
        words = self._found[length].get(context, {})
        return words.get(word, 0), words.total() if words else 0

    def _counted(self, length):
        """Of each context, after how many words each word comes in it."""
        found = collections.defaultdict(collections.Counter)
        for prefix, counts in self.counts[length].items():
            found[prefix[1:]].update(counts.keys())
        return found


def n_gram_model(order, texts):
    """Kneser and Ney's model of an order."""
    grams, words = padded_everygram_pipeline(order, texts)
    model = KneserNeyInterpolated(order)
    model.fit(grams, words)
    model.estimator = Indexed(model.vocab, model.counts, order=order)
    return model


def perplexity(model, order, discount, pieces, texts):
    """Exp of the mean of -log P of all pieces and ends. A piece that the training text never has is
    as likely as `UNSEEN` over the number of pieces.
    """
    model.estimator.discount = discount
    score = functools.lru_cache(None)(lambda word, context: model.score(word, context))
    nats = 0.0
    count = 0
    for text in texts:
        padded = ["<s>"] * (order - 1) + text + ["</s>"]
        for gram in ngrams(padded, order):
            likely = (1 - UNSEEN) * score(gram[-1], gram[:-1]) + UNSEEN / pieces
            nats -= math.log(likely)
            count += 1
    return math.exp(nats / count)


def main(_):
    folder = RunFolder(MODEL.value)
    vocabulary = vocabularies.load(folder.path)
    corpus = corpora.load(**folder.read_description()["corpus"])
    train, valid = (pieces_of(side.sources, vocabulary) for side in (corpus.train, corpus.valid))
    found = {}
    for order in map(int, ORDERS.value):
        model = n_gram_model(order, train)
        for discount in map(float, DISCOUNTS.value):
            found[order, discount] = perplexity(model, order, discount, vocabulary.size, valid)
            print(f"order {order}, discount {discount}: {found[order, discount]:.2f}", flush=True)
    ours = Generator.load(MODEL.value).perplexities(corpus.valid.sources)["perplexity"]
    order, discount = min(found, key=found.get)
    best = found[order, discount]
    rows = [
        [f"Kneser-Ney, order {order}, discount {discount}", f"{best:.2f}"],
        ["this run", f"{ours:.2f}"],
    ]
    print_table(["validation perplexity a piece", ""], rows)


if __name__ == "__main__":
    app.run(main)
