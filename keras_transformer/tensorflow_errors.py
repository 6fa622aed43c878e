"""The reason in a TensorFlow error, and silence about all else that TensorFlow writes."""

import contextlib
import os
import re
import sys
from collections.abc import Iterator

# Beginnings of the lines that say where in the program or in the graph an error came from.
PLACES = re.compile(
    r"Graph execution error:|Detected at node|<stack|File .+, line \d+, in |Node: '|\[\[\{\{|"
    r"\d+ root error\(s\) found"
)
# What surrounds the reason in its line: "(0) INVALID_ARGUMENT: {{function_node ...}} " and " [Op:".
BEFORE = re.compile(r"(\(\d+\) [A-Z_]+:\s*)?(\{\{function_node .*?\}\}\s*)*")
AFTER = re.compile(r" \[Op:\w+\]$")
# The words of an assertion in the graph; the values that it adds stay.
ASSERTED = re.compile(r"^assertion failed: \[(.*?)\](?= \[|$)")


def reason_of(error: Exception) -> str:
    """Return the line of an error's message that says what is wrong: the first that is no place in
    TensorFlow's program or graph. For a model's file that cannot be read, add a remedy.
    """
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}. Copy it again from where it was made."
    message = getattr(error, "message", None) or str(error)
    lines = map(str.strip, message.splitlines())
    reasons = (BEFORE.sub("", line, count=1) for line in lines if not PLACES.match(line))
    reason = AFTER.sub("", next(filter(None, reasons), type(error).__name__))
    return ASSERTED.sub(r"\1", reason)


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Discard what libraries, also those of C++, write to standard error in a block."""
    sys.stderr.flush()
    stderr = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
