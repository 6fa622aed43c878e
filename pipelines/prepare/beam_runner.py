"""Options, pipelines and errors of Apache Beam. This module does not need TensorFlow."""

import builtins
import contextlib
import io
import logging
import os
import pathlib
import re
import shlex
import sys
import threading

from pipelines import needing

# Beam's DirectRunner falls back to this one after trying to download another from GitHub.
IN_PROCESS = "--runner=FnApiRunner"
WORKER = "apache_beam.runners.worker.sdk_worker_main"


def beam_options(options: str = ""):
    """Parse Beam's options, such as "--runner=FlinkRunner --flink_master=host:8081", and import the
    packages of the extra, so that both fail before the long work.
    """
    try:
        # Beam warns of missing Google Cloud clients, which we do not need.
        logging.disable(logging.WARNING)
        with needing("beam", "This command"):
            import babel
            import regex
            from apache_beam.options.pipeline_options import PipelineOptions
    finally:
        logging.disable(logging.NOTSET)
    del babel, regex
    # Beam's errors are raised, and our commands print them in one line.
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
    messages = io.StringIO()
    try:
        with contextlib.redirect_stderr(messages):
            parsed = PipelineOptions([IN_PROCESS, *shlex.split(options)])
            parsed.get_all_options()
    except (SystemExit, ValueError) as error:
        reason = messages.getvalue().strip().splitlines()[-1:] or [error]
        raise ValueError(
            f"`beam_options` must be options of Apache Beam. Received: {options!r} ({reason[0]}). "
            "Correct or leave them out."
        ) from error
    return parsed


def of_processes(count: int, show_logs: bool):
    """Return Beam's options for worker processes on this machine. Their errors are raised here.
    Ctrl-C ends this process, and they end with it; this process ends if one of them is killed.
    """
    options = beam_options(f"--direct_num_workers={count}")
    from apache_beam.options.pipeline_options import StandardOptions
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner
    from apache_beam.transforms.environments import SubprocessSDKEnvironment

    command = f"trap '' INT; exec {shlex.quote(sys.executable)} -m {WORKER}"
    command += "" if show_logs else " 2>/dev/null"
    workers = SubprocessSDKEnvironment.from_command_string(command)
    options.view_as(StandardOptions).runner = FnApiRunner(workers)
    threading.excepthook = _exit_if_a_worker_died
    return options


def _exit_if_a_worker_died(failure):
    """End the process if Beam's thread for a worker failed: Beam would wait for it for ever. Errors
    of its other threads are consequences.
    """
    if failure.thread.name == "run_worker":
        remedy = "Did it run out of memory? The same command resumes; try fewer --processes."
        os.write(2, f"error: {failure.exc_value}. {remedy}\n".encode())
        os._exit(1)


@contextlib.contextmanager
def pipeline_of(options):
    """Yield a Beam pipeline, which runs when the block ends, and raise its workers' errors."""
    import apache_beam as beam

    try:
        with beam.Pipeline(options=options) as pipeline:
            # Unused, and left behind if the process is killed.
            pathlib.Path(pipeline.local_tempdir).rmdir()
            yield pipeline
    except (ValueError, OSError, RuntimeError) as error:
        if (cause := original(error)) is error:
            raise
        raise cause from error


def original(error: Exception) -> Exception:
    """Return the `ValueError` or `OSError` that a worker raised. Beam adds the name of a step to
    it, or makes it a `RuntimeError` with the whole traceback.
    """
    prefix = "" if isinstance(error, RuntimeError) else f"{type(error).__name__}: "
    match = re.search(r"^(\w+): (.+) \[while running '", f"{prefix}{error}", re.MULTILINE)
    raised = getattr(builtins, match[1], None) if match else None
    for kind in (OSError, ValueError):
        if isinstance(raised, type) and issubclass(raised, kind):
            of_file = re.fullmatch(r"\[Errno (\d+)\] (.+): '(.+)'", match[2])
            return kind(int(of_file[1]), *of_file.groups()[1:]) if of_file else kind(match[2])
    return error
