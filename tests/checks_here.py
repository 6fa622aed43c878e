"""An export's check of itself without the seconds that a process of its own takes to start.
test_saved_model.py checks one in a process of its own, as the product does.
"""

import contextlib
import io
import json

import pytest

from keras_transformer.saved_models import self_check


def report_here(folder):
    """What `self_check.report` gives."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        self_check.main(folder)
    return json.loads(printed.getvalue())


@contextlib.contextmanager
def checks_here():
    """Let exports check themselves in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(self_check, "report", report_here)
        yield
