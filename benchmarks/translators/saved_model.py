"""Our SavedModel, translating in turns."""

import pathlib

from benchmarks.turns import Clock, Parent
from keras_transformer.serving.cores import spread_over_cores
from keras_transformer.serving.translator import Translator
from pipelines.vocabulary import Vocabulary


def main():
    parent = Parent()
    task = parent.task
    lines = pathlib.Path(task["lines"]).read_text(encoding="utf-8").splitlines()
    at_once = spread_over_cores() if task["spread"] else 1
    began = Clock()
    translator = Translator.load(task["model"])
    translator.translate(lines[:1])
    first = began.read()["seconds"]
    parent.say(ready=True)
    count = Vocabulary.load(task["vocabulary"]).tokenizer.tokenize
    for _ in parent.orders():
        clock = Clock()
        translations = translator.translate(lines, batch_size=task["batch_size"], batches_at_once=at_once)
        taken = clock.read()
        parent.say(**taken, tokens=int(count(translations).row_lengths().numpy().sum()), first=first, translations=translations)


if __name__ == "__main__":
    main()
