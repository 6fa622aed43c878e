"""Average the last checkpoints of a run (Vaswani et al. 2017, section 6.1): `python -m
keras_transformer.average --model_dir=runs/x`.
"""

from keras_transformer import flags
from keras_transformer.training.options import Averaging, RunOptions

SECTIONS = (RunOptions, Averaging)


def main(FLAGS):
    from keras_transformer.runs.folder import RunFolder
    from keras_transformer.training import averaging

    folder = RunFolder(flags.required(FLAGS, "model_dir"))
    folder.read_description()
    count = FLAGS.average_checkpoints
    last = averaging.last_checkpoints(folder.checkpoints, count)
    had_scores = folder.evaluation.exists()
    folder.write_averaged(averaging.average(last))
    note = f" (--average_checkpoints={count}: there are no more)" if len(last) < count else ""
    print(f"{folder.averaged}: {averaging.of_steps(last)}{note}")
    if had_scores:
        print(f"{folder.evaluation} is removed: its scores were of other weights")


if __name__ == "__main__":
    flags.run(main, SECTIONS)
