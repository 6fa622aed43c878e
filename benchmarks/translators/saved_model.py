"""Our SavedModel, translating in turns."""

import sentencepiece

from benchmarks.translators.service import in_batches, serve
from keras_transformer.serving.cores import spread_over_cores
from keras_transformer.serving.translator import Translator


def load(task):
    at_once = spread_over_cores() if task["spread"] else 1
    pieces = sentencepiece.SentencePieceProcessor(model_file=task["vocabulary"])
    translator = Translator.load(task["model"])

    def decode(lines):
        # As many sentences at once as the others decode: no fewer for long ones.
        return translator.translate(lines, batch_tokens=10**9)

    def translate(lines):
        return in_batches(decode, lines, list(map(len, pieces.encode(lines))), task["batch_size"], at_once), None

    return translate


if __name__ == "__main__":
    serve(load)
