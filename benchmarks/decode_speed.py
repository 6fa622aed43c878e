"""Decoding speed beside CTranslate2's: `python -m benchmarks.decode_speed --model=runs/NAME --lines=test.en`.

Exports the run both ways, and lets the systems translate the lines in turns (A B C A B C ...), each in a process of its own, its best way
of using the cores. Target tokens a second, EOS included; medians of the rounds.
"""

import pathlib
import statistics
import tempfile

from absl import app, flags

from benchmarks.tables import print_table
from benchmarks.turns import Trainer
from keras_transformer.serving import ctranslate2_model
from keras_transformer.serving.export import export
from keras_transformer.serving.model_folder import ModelFolder
from keras_transformer.serving.translation_module import TranslationModule
from keras_transformer.serving.translator import search

OURS, ENGINE = "benchmarks.translators.saved_model", "benchmarks.translators.ctranslate2_model"
SYSTEMS = {
    "ctranslate2_float32": (ENGINE, {"precision": "float32", "spread": False}),
    "ctranslate2_float32_spread": (ENGINE, {"precision": "float32", "spread": True}),
    "ctranslate2_int8_spread": (ENGINE, {"precision": "int8", "spread": True}),
    "saved_model_float32": (OURS, {"spread": False}),
    "saved_model_float32_spread": (OURS, {"spread": True}),
}

MODEL = flags.DEFINE_string("model", None, "Folder of a run.", required=True)
LINES = flags.DEFINE_string("lines", None, "File of source lines.", required=True)
BEAM_SIZES = flags.DEFINE_list("beam_sizes", ["4", "1"], "1: greedy.")
BATCH_SIZE = flags.DEFINE_integer("batch_size", 32, "Sentences at once.")
CHOSEN = flags.DEFINE_list("systems", list(SYSTEMS), "Which take turns; ratios are of the first.")
ROUNDS = flags.DEFINE_integer("rounds", 3, "Rounds that count.", lower_bound=1)


def measure(beam_size, folder):
    run = ModelFolder(MODEL.value)
    description = run.read_description()
    exported = {
        OURS: export(TranslationModule(*run.load(), search(beam_size, 0.6)), folder / f"{beam_size}", description),
        ENGINE: ctranslate2_model.convert(*run.load(), folder / f"{beam_size}_ctranslate2", description),
    }
    trainers, answers = {}, {}
    try:
        for name in CHOSEN.value:
            module, task = SYSTEMS[name]
            task = {**task, "model": str(exported[module]), "beam_size": beam_size, "batch_size": BATCH_SIZE.value}
            task |= {"lines": str(pathlib.Path(LINES.value).resolve()), "vocabulary": str(run.vocabulary.resolve())}
            trainers[name] = Trainer(module, task, folder / f"{name}.log")
        for number in range(ROUNDS.value + 1):
            for name, trainer in trainers.items():
                answer = trainer.train(1)
                if "unavailable" in answer:
                    raise SystemExit(f"{name}: {answer['unavailable']}")
                if number:
                    answers.setdefault(name, []).append(answer)
    finally:
        for trainer in trainers.values():
            trainer.close()
    speeds = {name: [answer["tokens"] / answer["seconds"] for answer in given] for name, given in answers.items()}
    reference = CHOSEN.value[0]
    expected = answers[reference][0]["translations"]
    for name, given in answers.items():
        same = sum(map(str.__eq__, given[0]["translations"], expected))
        ratio = statistics.median(speed / other for speed, other in zip(speeds[name], speeds[reference], strict=True))
        yield [
            str(beam_size),
            name,
            f"{statistics.median(speeds[name]):.0f}",
            f"{min(speeds[name]):.0f}-{max(speeds[name]):.0f}",
            f"{ratio:.2f}",
            f"{statistics.median(answer['core_seconds'] / answer['seconds'] for answer in given):.2f}",
            f"{same} of {len(expected)}",
            f"{given[0]['first']:.2f} s",
        ]


def main(_):
    with tempfile.TemporaryDirectory() as folder:
        rows = [row for beam_size in BEAM_SIZES.value for row in measure(int(beam_size), pathlib.Path(folder))]
    print_table(["beam", "system", "tokens/s", "rounds", "x the first", "cores busy", "lines as the first", "load and first line"], rows)


if __name__ == "__main__":
    app.run(main)
