"""Which checkpoints of a finished run are averaged best (Vaswani et al. 2017, section 6.1): the
last ones of an interval, those of a share of the run's end, or the last weights alone.

    python -m benchmarks.limits.averaging --flagfile=tiny.flags --max_minutes=5 --model_dir=runs/x
        --intervals=1 --chosen_share=0.2

The run has kept its checkpoints, many and evenly in time. The flags are those of its training;
`--intervals` has the recipe's `--checkpoint_minutes`. All rules are compared by cross-entropy of
the validation set, and three of them by the score of the test set.
"""

import dataclasses
import pathlib

from keras_transformer import flags as our_flags
from keras_transformer import train
from pipelines.options import Options, option


@dataclasses.dataclass(frozen=True)
class Compared(Options):
    """Comparison."""

    intervals: tuple[str, ...] = option(("1",), "Minutes between checkpoints, by the old rule.")
    shares: tuple[str, ...] = option(("0.05", "0.1", "0.2", "0.3"), "Shares of the run's end.")
    chosen_share: str = option("0.2", "The share whose weights are scored.")
    test_sentences: int = option(300, "Sentences to translate or to parse; 0: all.")


def main(FLAGS):
    from keras_transformer.runs.folder import RunFolder
    from keras_transformer.tasks import task_class
    from keras_transformer.training import averaging, checkpoint
    from keras_transformer.training.loss import label_measures
    from pipelines.batches import batching

    kind = task_class(FLAGS.task)
    values = FLAGS.flag_values_dict()
    folder = RunFolder(our_flags.required(FLAGS, "model_dir"))
    task = kind(values)
    task.read_files(folder)
    model = task.module_class.build(task.description(), "float32")
    longest = max(values["batch_tokens"] or 25000, values["max_train_length"])
    evaluate = label_measures(
        model, lambda: batching.evaluation_batches(task.examples("valid"), longest)
    )

    def measure(weights):
        checkpoint.set_weights(model, weights)
        return evaluate()["cross_entropy"]

    seconds = {
        path: checkpoint.progress_of(path)["seconds"]
        for path in checkpoint.checkpoints(folder.checkpoints)
    }
    count = values["average_checkpoints"]
    end = max(seconds.values())
    chosen = {"last": [*seconds][-1:]}
    for interval in FLAGS.intervals:
        chosen[f"{interval}_minutes"] = at_times(
            seconds, times_of_interval(end, float(interval) * 60, count)
        )
    if folder.averaged.exists():
        # By the recipe's own rule.
        chosen["own"] = [folder.averaged]
    for name, paths in chosen.items():
        show(name, measure(averaging.average(paths)), paths)
    for share in FLAGS.shares:
        times = [end * (1 - float(share) * index / count) for index in range(count)][::-1]
        paths = at_times(seconds, times)
        number, losses = averaging.best_number(paths, measure)
        show(f"share {share}, {number} of {losses}", losses[number - 1], paths[-number:])
        if share == FLAGS.chosen_share:
            chosen["new"] = paths[-number:]
    for name, paths in chosen.items():
        weights = folder.path / f"rule-{name}.npz"
        checkpoint.write_archive(weights, averaging.average(paths))
        print(f"test, {name}: {score(weights, FLAGS.test_sentences)}", flush=True)
        weights.unlink()


def times_of_interval(end: float, interval: float, count: int) -> list[float]:
    """When the last checkpoints of an interval were written, oldest first, in seconds."""
    last = int(end // interval)
    return [interval * index for index in range(max(1, last - count + 1), last + 1)]


def at_times(seconds: dict, times: list[float]) -> list[pathlib.Path]:
    """For each time the checkpoint that lies nearest, each once, oldest first."""
    nearest = [min(seconds, key=lambda path: abs(seconds[path] - time)) for time in times]
    return [*dict.fromkeys(nearest)]


def show(rule, loss, paths):
    """Print a row."""
    print(f"{rule}: {loss:.4f}, mean of {', '.join(path.stem for path in paths)}", flush=True)


def score(weights, sentences):
    """What `evaluate` says of some weights on the test set."""
    from keras_transformer.runs.description import task_of
    from keras_transformer.runs.model_path import description_of
    from keras_transformer.tasks import task_class
    from keras_transformer.tasks.score import DEFAULTS

    description = description_of(str(weights))
    # Other tasks refuse it.
    metrics = {"metrics": ["bleu"]} if task_of(description) == "translation" else {}
    kind = task_class(task_of(description)).scorer
    scorer = kind(description, str(weights), {**DEFAULTS, **metrics})
    if sentences and hasattr(scorer, "keep_first"):
        scorer.keep_first(sentences)
    loading = {"precision": "float32", "batch_tokens": 2048, "options": {}}
    return scorer.examine(loading, 1)


if __name__ == "__main__":
    our_flags.run(main, (*train.SECTIONS, Compared), train.OF_TASKS)
