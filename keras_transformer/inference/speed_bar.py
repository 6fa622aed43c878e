"""A progress bar of a long translation on the terminal, with sentences per second."""

import contextlib
import sys
from collections.abc import Callable, Iterator

# With fewer lines the bar would be gone before it is read.
MANY_LINES = 500


@contextlib.contextmanager
def speed_bar(lines: int) -> Iterator[Callable[[int], None] | None]:
    """A function that takes how many more lines are done, and shows a bar; None where it cannot."""
    if lines < MANY_LINES or not sys.stderr.isatty():
        yield None
        return
    from rich import progress
    from rich.console import Console

    columns = (
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[speed]}"),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=lines, speed="")

        def report(done):
            [state] = bar.tasks
            # Split into sentences, a file has more than lines.
            bar.update(task, advance=done, total=max(state.total, state.completed + done))
            bar.update(task, speed=f"{state.completed / max(state.elapsed, 1e-9):.1f} sentences/s")

        yield report
