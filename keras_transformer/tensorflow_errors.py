"""What TensorFlow's errors say, and that it says nothing else."""

import contextlib
import os
import re
import sys
from collections.abc import Iterator

# How lines begin that say where in the program or in the graph an error came from.
PLACES = re.compile(
    r"Graph execution error:|Detected at node|<stack|File .+, line \d+, in |Node: '|\[\[\{\{|"
    r"\d+ root error\(s\) found"
)
# What stands before the words of a line: "(0) INVALID_ARGUMENT: {{function_node ...}} "; and after.
BEFORE = re.compile(r"(\(\d+\) [A-Z_]+:\s*)?(\{\{function_node .*?\}\}\s*)*")
AFTER = re.compile(r" \[Op:\w+\]$")


def reason_of(error: Exception) -> str:
    """The line of an error's message that says what is wrong: of TensorFlow's the first that does
    not say where it was, of others the first; of a model's file that is not read, a remedy too.
    """
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}. Copy it again from where it was made."
    message = getattr(error, "message", None) or str(error)
    lines = [line.strip() for line in message.splitlines()]
    reasons = [
        AFTER.sub("", BEFORE.sub("", line, count=1)) for line in lines if not PLACES.match(line)
    ]
    return next(filter(None, reasons), type(error).__name__)


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """What libraries write to the standard error by themselves is not seen."""
    sys.stderr.flush()
    kept = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
