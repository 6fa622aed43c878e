"""Wait for what another thread or process does."""

import time


def wait_until(condition, seconds=60):
    """Return once a condition holds; fail if it does not within that time, instead of hanging."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"still waiting after {seconds} s"
        time.sleep(0.001)
