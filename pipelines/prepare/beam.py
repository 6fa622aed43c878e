"""The shards of a preparation, made by Apache Beam: in this process, or by the workers of a cluster
(Vaswani et al. 2017, section 5.1).
"""

import builtins
import contextlib
import io
import logging
import re
import shlex

from pipelines import corpora
from pipelines.corpora.manifest import read_json
from pipelines.dropped import Dropped
from pipelines.prepare import sharding
from pipelines.whole_files import write_json

DROPPED = ".dropped.json"
# Beam's DirectRunner tries to download another runner from GitHub first, and then takes this one.
IN_PROCESS = "--runner=FnApiRunner"


def beam_options(options: str = ""):
    """Import what the extra installs, and read Beam's options, before anything takes long.

    Args:
        options: such as "--runner=FlinkRunner --flink_master=host:8081".

    Returns:
        Beam's `PipelineOptions`.
    """
    try:
        # Beam warns the root logger of Google Cloud clients that nothing here needs.
        logging.disable(logging.WARNING)
        import babel
        import regex
        from apache_beam.options.pipeline_options import PipelineOptions
    except ImportError as error:
        raise ValueError(
            f"keras_transformer.prepare needs {error.name}. Run: pip install "
            "'keras-transformer-nmt[beam]'"
        ) from error
    finally:
        logging.disable(logging.NOTSET)
    del babel, regex
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


def make_shards(shards, wanted, settings, filters, parts, at_a_time=None, options=None):
    """Read a corpus' training side, and write shards of it.

    Args:
        shards: `sharding.Shards`.
        wanted: numbers of the shards to make. The others stay as they are.
        settings: arguments of `corpora.stream`.
        filters: `Filters`.
        parts: parts of the corpus, each read by one worker.
        at_a_time: shards made in one reading of the corpus; None: all. Fewer shards take less
            memory, and more readings.
        options: what `beam_options` gave; None: Beam's own runner, in this process.

    Returns:
        Reason -> number of pairs left out, those of shards that stay included.
    """
    options = options or beam_options()
    at_a_time = at_a_time or shards.number
    # Even without a shard to make, the corpus is read once to count what is left out.
    for start in range(0, max(1, len(wanted)), at_a_time):
        try:
            _run(shards, wanted[start : start + at_a_time], settings, filters, parts, options)
        except (ValueError, OSError, RuntimeError) as error:
            if (told := original(error)) is error:
                raise
            raise told from error
    dropped = read_json(shards.folder / DROPPED)
    # Not there if a worker wrote elsewhere: the missing shards show it.
    (shards.folder / DROPPED).unlink(missing_ok=True)
    return dropped or {}


def original(error: Exception) -> Exception:
    """The `ValueError` or `OSError` that a worker raised. Beam adds the name of a step to it, or
    makes it a `RuntimeError` with the whole traceback.
    """
    traceback = (
        str(error) if isinstance(error, RuntimeError) else f"{type(error).__name__}: {error}"
    )
    found = re.search(r"^(\w+): (.+) \[while running '", traceback, re.MULTILINE)
    kind = getattr(builtins, found[1], None) if found else None
    for told in (OSError, ValueError):
        if isinstance(kind, type) and issubclass(kind, told):
            return told(found[2])
    return error


def _run(shards, wanted, settings, filters, parts, options):
    import apache_beam as beam

    with beam.Pipeline(options=options) as pipeline:
        read = (
            pipeline
            | "parts" >> beam.Create(range(parts))
            | "spread" >> beam.Reshuffle()
            | "read, filter, tokenize"
            >> beam.FlatMap(_read, parts, settings, filters, shards, wanted)
            .with_output_types(tuple[int, bytes])
            .with_outputs("dropped", main="pairs")
        )
        # A shard without pairs is written too.
        empty = pipeline | "empty shards" >> beam.Create(
            [(shard, b"") for shard in wanted]
        ).with_output_types(tuple[int, bytes])
        (
            (read.pairs, empty)
            | beam.Flatten()
            | beam.GroupByKey()
            | "write" >> beam.MapTuple(shards.write)
        )
        dropped = read.dropped | beam.CombinePerKey(sum) | beam.combiners.ToDict()
        dropped | "write dropped" >> beam.Map(
            lambda dropped: write_json(shards.folder / DROPPED, dropped)
        )


def _read(part, parts, settings, filters, shards, wanted):
    """Yield the tokenized pairs of a part, and how many of its pairs were dropped."""
    from apache_beam.pvalue import TaggedOutput

    dropped = Dropped()
    pairs = sharding.kept(
        corpora.stream(**settings, part=part, parts=parts, dropped=dropped), filters, dropped
    )
    yield from sharding.tokenized(pairs, shards.models, shards.number, wanted)
    yield from (TaggedOutput("dropped", reason) for reason in dropped.items())
