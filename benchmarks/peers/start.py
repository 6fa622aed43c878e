"""How long translating three lines takes, process and all: `python -m benchmarks.peers.start`.

Processes take turns: one that imports TensorFlow and TensorFlow Text, loads a SavedModel by
`tf.saved_model.load` and calls it once; `keras_transformer.translate` with the same SavedModel,
with the folder of its run, and with its graphs of ONNX and LiteRT where these lie beside the
SavedModel. Prints the median of each, and its ratio to the first. Fails if they give different
translations.
"""

import pathlib
import statistics
import subprocess
import sys
import time

from absl import app, flags

from benchmarks.peers.turns import ROOT
from benchmarks.tables import print_table
from keras_transformer.saved_models.versions import DECODERS, newest_version

SAVED_MODEL = flags.DEFINE_string(
    "saved_model", "saved_models/home_assistant_en_de", "Folder of a SavedModel's versions."
)
RUN = flags.DEFINE_string("run", "runs/home_assistant_en_de", "Folder of its run.")
ROUNDS = flags.DEFINE_integer("rounds", 5, "How often each process is started.", lower_bound=1)
LINES = flags.DEFINE_list(
    "lines", ["Turn off the lights.", "Good morning.", "Open the window"], "Lines to translate."
)
GOALS = {"SavedModel": 0.8, "run": 1.1}
BARE = """
import sys
import tensorflow as tf
import tensorflow_text

model = tf.saved_model.load(sys.argv[1])
lines = tf.constant(sys.stdin.read().splitlines())
for line in model.signatures["serving_default"](text=lines)["translation"].numpy():
    print(line.decode())
"""


def commands():
    """The command lines by name."""
    folder = pathlib.Path(SAVED_MODEL.value).resolve()
    version = newest_version(folder)
    translate = [sys.executable, "-m", "keras_transformer.translate"]
    return {
        "bare": [sys.executable, "-c", BARE, str(version)],
        "SavedModel": [*translate, f"--model={version}"],
        "run": [*translate, f"--model={pathlib.Path(RUN.value).resolve()}"],
        **{
            form: [*translate, f"--model={folder}_{form}"]
            for form in DECODERS
            if pathlib.Path(f"{folder}_{form}").exists()
        },
    }


def timed(command, text):
    """Seconds that a process takes, and what it writes."""
    began = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True)
    seconds = time.perf_counter() - began
    if done.returncode:
        raise SystemExit(f"{command[1:4]} failed:\n{done.stderr[-2000:]}")
    return seconds, done.stdout


def main(_):
    text = "".join(f"{line}\n" for line in LINES.value)
    seconds = {name: [] for name in commands()}
    written = {}
    for _ in range(ROUNDS.value):
        for name, command in commands().items():
            taken, written[name] = timed(command, text)
            seconds[name].append(taken)
        print({name: round(times[-1], 2) for name, times in seconds.items()}, flush=True)
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    rows = [
        [name, f"{median:.2f}", f"{median / medians['bare']:.2f}", str(GOALS.get(name, ""))]
        for name, median in medians.items()
    ]
    print_table(["", "median s", "of bare", "goal"], rows)
    if len(set(written.values())) > 1:
        sys.exit(f"DIFFERENT: {written}")


if __name__ == "__main__":
    app.run(main)
