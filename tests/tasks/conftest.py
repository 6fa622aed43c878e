"""What tests of a task share: values of flags, as a command hands them over."""

import pytest
from absl.testing import flagsaver

from keras_transformer import flags, train
from keras_transformer.flagfiles import expand_flagfiles


@pytest.fixture(scope="session")
def values_of():
    """A function of a task and arguments: the values of the flags of the command that trains it."""

    def values(task, *arguments):
        FLAGS = flags.declare("task", *train.GROUPS, *task.flag_groups)
        with flagsaver.flagsaver():
            FLAGS.unparse_flags()
            FLAGS(["train", *expand_flagfiles(arguments)])
            return FLAGS.flag_values_dict()

    return values
