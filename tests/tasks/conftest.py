"""Values of flags for tests of tasks, as a command passes them."""

import pytest
from command_flags import values_of_task


@pytest.fixture(scope="session")
def values_of():
    """A function of a task and arguments: the values of the flags of the command that trains it."""
    return values_of_task
