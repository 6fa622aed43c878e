"""Our SavedModel, translating in turns, in the batches that users get: by tokens, not by `batch_size` sentences."""

from benchmarks.translators.service import serve
from keras_transformer.serving.cores import spread_over_cores
from keras_transformer.serving.translator import Translator


def load(task):
    at_once = spread_over_cores() if task["spread"] else 1
    translator = Translator.load(task["model"])
    return lambda lines: (translator.translate(lines, batches_at_once=at_once), None)


if __name__ == "__main__":
    serve(load)
