"""Generation that is less sequential (Vaswani et al. 2017, section 7): blockwise parallel decoding
(Stern et al. 2018). `python -m benchmarks.paper.blockwise --base=RUN --runs=RUN,RUN`, runs of
--block_size that start from the base.

Prints for each run: of how many test lines blocks give the strings of greedy search, and the rest;
the mean accepted block; BLEU, beside that of the base's greedy search; and the time of one
sentence, greedily and in blocks, which take turns.
"""

import statistics
import time

import tensorflow as tf
from absl import app, flags

from benchmarks.tables import print_table
from keras_transformer.evaluation import bleu
from keras_transformer.inference.translator import Translator
from pipelines.corpora import HomeAssistant

BASE = flags.DEFINE_string("base", "runs/home_assistant_en_de", "Run without heads.")
RUNS = flags.DEFINE_list("runs", None, "Runs with heads.", required=True)
TIMED = flags.DEFINE_integer("timed", 200, "Sentences that are timed, one by one.", 1)


class Counting:
    """A stepper that counts the blocks of all sentences."""

    def __init__(self, stepper, blocks):
        self._stepper = stepper
        self._blocks = blocks

    def __getattr__(self, name):
        return getattr(self._stepper, name)

    def block(self, ids, lengths, state, source):
        with tf.control_dependencies([self._blocks.assign_add(tf.shape(ids)[0])]):
            ids = tf.identity(ids)
        return self._stepper.block(ids, lengths, state, source)


def accepted(path, lines):
    """Tokens, each line's end among them, for each block that gave them."""
    blocks = tf.Variable(0)
    translator = Translator.load(path, blockwise=True)
    module = translator._model._module
    make = module.stepper
    module.stepper = lambda: Counting(make(), blocks)
    details = translator.translate_in_detail(lines)
    return sum(len(one[0].pieces) for one in details) / int(blocks)


def milliseconds(translators, lines):
    """The median time of a line by each, and the median of the ratios of the last to the first."""
    times = []
    for line in lines:
        turn = []
        for translator in translators:
            begun = time.perf_counter()
            translator.translate([line])
            turn.append(1000 * (time.perf_counter() - begun))
        times.append(turn)
    total = [sum(column) for column in zip(*times, strict=True)]
    medians = [statistics.median(column) for column in zip(*times, strict=True)]
    return [*medians, statistics.median(turn[-1] / turn[0] for turn in times), total[-1] / total[0]]


def main(_):
    test = HomeAssistant().load().test
    lines = test.sources
    base = Translator.load(BASE.value, beam_size=1).translate(lines)
    print(f"{len(lines):,} lines; base: BLEU {bleu.score(base, test.targets)['bleu']}")
    rows = []
    for path in RUNS.value:
        greedy = Translator.load(path, beam_size=1)
        blocks = Translator.load(path, blockwise=True)
        expected = greedy.translate(lines)
        found = blocks.translate(lines)
        for line, one, other in zip(lines, expected, found, strict=True):
            if one != other:
                scores = greedy.score([line, line], [one, other])
                print(f"{path}: {line!r}: greedily {one!r}, in blocks {other!r}; log P {scores}")
        same = sum(one == other for one, other in zip(expected, found, strict=True))
        of_base = sum(one == other for one, other in zip(base, found, strict=True))
        times = milliseconds((greedy, blocks), lines[: TIMED.value])
        rows.append(
            [
                *(path, same, of_base, f"{accepted(path, lines):.2f}"),
                bleu.score(found, test.targets)["bleu"],
                *(f"{one:.2f}" for one in times),
            ]
        )
    columns = ["run", "as greedy", "as the base", "accepted block", "BLEU"]
    columns += ["ms, greedy", "ms, blocks", "median ratio", "ratio of sums"]
    print_table(columns, rows)


if __name__ == "__main__":
    app.run(main)
