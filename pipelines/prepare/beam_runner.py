"""Options and pipelines of Apache Beam, and its workers' errors. TensorFlow is not needed here."""

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

# Beam's DirectRunner tries to download another runner from GitHub first, and then takes this one.
IN_PROCESS = "--runner=FnApiRunner"
WORKER = "apache_beam.runners.worker.sdk_worker_main"


def beam_options(options: str = ""):
    """Import what the extra installs, and read Beam's options, such as "--runner=FlinkRunner
    --flink_master=host:8081", before anything takes long.
    """
    try:
        # Beam warns the root logger of Google Cloud clients that nothing here needs.
        logging.disable(logging.WARNING)
        with needing("beam", "This command"):
            import babel
            import regex
            from apache_beam.options.pipeline_options import PipelineOptions
    finally:
        logging.disable(logging.NOTSET)
    del babel, regex
    # Errors in Beam are raised, and printed in one line.
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            parsed = PipelineOptions([IN_PROCESS, *shlex.split(options)])
            parsed.get_all_options()
    except (SystemExit, ValueError) as error:
        reason = said.getvalue().strip().splitlines()[-1:] or [error]
        raise ValueError(
            f"`beam_options` must be options of Apache Beam. Received: {options!r} ({reason[0]}). "
            "Correct or leave them out."
        ) from error
    return parsed


def of_processes(count: int, are_heard: bool):
    """Options of Beam for processes of this machine. They log all they do, which is heard or not;
    what fails in them is raised here. Ctrl-C is for this process, with which they end; it ends
    where one of them is killed.
    """
    options = beam_options(f"--direct_num_workers={count}")
    from apache_beam.options.pipeline_options import StandardOptions
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner
    from apache_beam.transforms.environments import SubprocessSDKEnvironment

    command = f"trap '' INT; exec {shlex.quote(sys.executable)} -m {WORKER}"
    command += "" if are_heard else " 2>/dev/null"
    workers = SubprocessSDKEnvironment.from_command_string(command)
    options.view_as(StandardOptions).runner = FnApiRunner(workers)
    threading.excepthook = _end_with_a_worker
    return options


def _end_with_a_worker(lost):
    """End where Beam's thread of a worker failed, which Beam would wait for, for ever. Its other
    threads fail because of it.
    """
    if lost.thread.name == "run_worker":
        remedy = "Had it too little memory? The same command goes on, with fewer --processes."
        os.write(2, f"error: {lost.exc_value}. What was written stays. {remedy}\n".encode())
        os._exit(1)


@contextlib.contextmanager
def pipeline_of(options):
    """A pipeline of Beam, which runs where the block ends; what a worker raised is raised."""
    import apache_beam as beam

    try:
        with beam.Pipeline(options=options) as pipeline:
            # Nothing uses it, and a kill would leave it.
            pathlib.Path(pipeline.local_tempdir).rmdir()
            yield pipeline
    except (ValueError, OSError, RuntimeError) as error:
        if (cause := original(error)) is error:
            raise
        raise cause from error


def original(error: Exception) -> Exception:
    """The `ValueError` or `OSError` that a worker raised. Beam adds the name of a step to it, or
    makes it a `RuntimeError` with the whole traceback.
    """
    kind = "" if isinstance(error, RuntimeError) else f"{type(error).__name__}: "
    traceback = f"{kind}{error}"
    found = re.search(r"^(\w+): (.+) \[while running '", traceback, re.MULTILINE)
    kind = getattr(builtins, found[1], None) if found else None
    for told in (OSError, ValueError):
        if isinstance(kind, type) and issubclass(kind, told):
            of_file = re.fullmatch(r"\[Errno (\d+)\] (.+): '(.+)'", found[2])
            return told(int(of_file[1]), *of_file.groups()[1:]) if of_file else told(found[2])
    return error
