"""Train a model of any task and export it for a server: `python -m keras_transformer.train
--flagfile=tiny.flags`.

It learns the vocabulary, trains (Vaswani et al. 2017, section 5), averages checkpoints, scores the
test split and exports (section 6.1). The same command again resumes where it was interrupted.

To train your own task, write a program:

    from keras_transformer import train

    class MyTask(Task): ...  # see keras_transformer.tasks.task

    if __name__ == "__main__":
        train.run(MyTask)
"""

from keras_transformer import flags
from keras_transformer.flags.of_commands import Dump
from keras_transformer.tasks import TASKS, TRAINING, TaskChoice, task_class

# A task adds its own options.
SECTIONS = (TaskChoice, *TRAINING, Dump)
OF_TASKS = {name: task.options for name, task in TASKS.items()}
# Options that `--help` shows first.
EVERYDAY = (
    *("corpus", "source_language", "target_language", "vocabulary_size"),
    *("model_dir", "max_minutes", "max_steps", "batch_tokens", "init_from", "seed", "release"),
)


def main(FLAGS):
    train(task_class(FLAGS.task), FLAGS)


def train(task, FLAGS, **changed):
    """Train a task as the flags say; `changed` values, by name, replace those of flags."""
    run_of(task, FLAGS, **changed).train()


def run_of(task, FLAGS, **changed):
    """Make the `Run` that `train` trains, and refuse wrong flags, before any text is read."""
    from keras_transformer.runs.inheritance import inherited
    from keras_transformer.runs.model_path import ModelPath
    from keras_transformer.runs.run import Run
    from keras_transformer.streams import require_folder

    values = FLAGS.flag_values_dict()
    explicit = {name for name in values if not FLAGS[name].using_default_value}
    run = Run(task, inherited({**values, **changed}, explicit, task.default_model_dir), TRAINING)
    for name in ("vocabulary_from", "adapter"):
        if run.values.get(name) and not run.folder.is_started:
            ModelPath.of(run.values[name])
    if FLAGS.release:
        path = run.folder.export_dir(FLAGS.export_dir)
        require_folder(f"--export_dir={path}", path)
    return run


def run(task):
    """Run the command line of a program that trains its own task."""
    flags.run(lambda FLAGS: train(task, FLAGS), (*TRAINING, Dump, *task.options), task=task)


if __name__ == "__main__":
    flags.run(main, SECTIONS, OF_TASKS, EVERYDAY)
