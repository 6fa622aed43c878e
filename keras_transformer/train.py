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
from keras_transformer.tasks import TASKS, task_class

# What training any task reads; a task adds its own groups.
GROUPS = (
    "seed",
    "batches",
    "objective",
    "optimizer",
    "training",
    "averaging",
    "model_dir",
    "export",
)
TASK_GROUPS = tuple({group: None for task in TASKS.values() for group in task.flag_groups})


def main(FLAGS):
    train(task_class(FLAGS.task), FLAGS)


def train(task, FLAGS):
    """Train a task as the flags say."""
    run_of(task, flags.values(FLAGS, *GROUPS, *task.flag_groups)).train()


def run_of(task, values):
    """The `Run` of a task by the values of its flags, by name."""
    from keras_transformer.training.run import Run

    return Run(task, values, flags.resumed(*GROUPS, *task.flag_groups))


def run(task):
    """Be the command that trains a task.

    Args:
        task: a subclass of `keras_transformer.tasks.task.Task`.
    """
    flags.run(lambda FLAGS: train(task, FLAGS), (*GROUPS, *task.flag_groups))


if __name__ == "__main__":
    flags.run(main, ("task", *GROUPS, *TASK_GROUPS))
