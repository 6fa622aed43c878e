"""Our graphs of ONNX or LiteRT, translating in turns without TensorFlow."""

from benchmarks.peers.translating import cores, serve
from benchmarks.peers.turns import Parent
from keras_transformer.inference.translator import Translator


def load(task):
    at_once = cores() if task["spread"] else 1
    search = {"blockwise": True} if task.get("blocks") else {}
    translator = Translator.load(task["model"], **search)
    return lambda lines: (translator.translate(lines, batches_at_once=at_once), None)


if __name__ == "__main__":
    serve(Parent(), load)
