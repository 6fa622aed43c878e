"""What tests of a task share: values of flags, as a command hands them over."""

import pytest
from command_flags import values_of_task


@pytest.fixture(scope="session")
def values_of():
    """A function of a task and arguments: the values of the flags of the command that trains it."""
    return values_of_task
