"""Our SavedModel, translating in turns."""

import sentencepiece

from benchmarks.translators.service import in_batches, serve
from keras_transformer.inference.translator import Translator
from keras_transformer.startup import spread_over_cores, start_tensorflow

# With forced lengths every sentence costs the same, and batches of equal size leave no core idle.
# 64 is our fastest size.
SENTENCES = 64


def load(task):
    start_tensorflow()
    at_once = spread_over_cores() if task["spread"] else 1
    translator = Translator.load(task["model"])
    if not task["forced_length"]:
        return lambda lines: (translator.translate(lines, batches_at_once=at_once), None)
    sentences = SENTENCES if task["spread"] else task["batch_size"]
    pieces = sentencepiece.SentencePieceProcessor(model_file=task["source_vocabulary"])

    def decode(lines):
        return translator.translate(lines, batch_tokens=10**9)

    return lambda lines: (
        in_batches(decode, lines, list(map(len, pieces.encode(lines))), sentences, at_once),
        None,
    )


if __name__ == "__main__":
    serve(load)
