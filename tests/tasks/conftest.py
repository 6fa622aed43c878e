"""What tests of a task share: values of flags, as a command hands them over."""

import pytest
from absl.testing import flagsaver

from keras_transformer import flags, train
from keras_transformer.flagfiles import expand_flagfiles
from keras_transformer.tasks import TASKS


@pytest.fixture(scope="session")
def values_of():
    """A function of a task and arguments: the values of the flags of the command that trains it."""

    def values(task, *arguments):
        groups = [group for entry in TASKS.values() for group in entry.flag_groups]
        FLAGS = flags.declare("task", *train.GROUPS, *groups, *task.flag_groups)
        with flagsaver.flagsaver():
            FLAGS.unparse_flags()
            FLAGS(["train", *expand_flagfiles(arguments)])
            return FLAGS.flag_values_dict()

    return values
