"""The shards of a preparation, made by Apache Beam: in this process, or by the workers of a cluster (Vaswani et al. 2017, section 5.1)."""

import collections
import logging
import shlex

from pipelines import corpora, records, sharding

DROPPED = ".dropped.json"
# Beam's DirectRunner is this one behind a download of another from GitHub, which it tries first.
IN_PROCESS = "--runner=FnApiRunner"


def require_beam():
    """Import what the extra installs.

    Raises:
        ValueError: if a package is missing, with the command that installs it.
    """
    try:
        # Beam warns the root logger of Google Cloud clients that nothing here needs.
        logging.disable(logging.WARNING)
        import apache_beam
        import babel
        import regex
    except ImportError as error:
        raise ValueError(f"pipelines.prepare needs {error.name}. Run: pip install 'keras-transformer-nmt[beam]'") from error
    finally:
        logging.disable(logging.NOTSET)
    del babel, regex
    return apache_beam


def make_shards(shards, wanted, settings, filters, parts, options=""):
    """Read a corpus' training side, and write shards of it.

    Args:
        shards: `sharding.Shards`.
        wanted: numbers of those to make; the others stay as they are.
        settings: arguments of `corpora.stream`.
        filters: `Filters`.
        parts: in how many parts, each by one worker, the corpus is read.
        options: Beam's, such as "--runner=FlinkRunner --flink_master=host:8081".

    Returns:
        Reason -> number of pairs that the filters dropped, those of shards that stay among them.

    Raises:
        ValueError, OSError: what `corpora.stream` raises.
        RuntimeError: what else goes wrong in Beam.
    """
    beam = require_beam()
    from apache_beam.options.pipeline_options import PipelineOptions

    try:
        with beam.Pipeline(options=PipelineOptions([IN_PROCESS, *shlex.split(options)])) as pipeline:
            read = (
                pipeline
                | "parts" >> beam.Create(range(parts))
                | "spread" >> beam.Reshuffle()
                | "read, filter, tokenize"
                >> beam.FlatMap(_read, parts, settings, filters, shards, wanted)
                .with_output_types(tuple[int, bytes])
                .with_outputs("dropped", main="pairs")
            )
            # A shard that no pair falls into is written too.
            empty = pipeline | "empty shards" >> beam.Create([(shard, b"") for shard in wanted]).with_output_types(tuple[int, bytes])
            (read.pairs, empty) | beam.Flatten() | beam.GroupByKey() | "write" >> beam.MapTuple(shards.write)
            dropped = read.dropped | beam.CombinePerKey(sum) | beam.combiners.ToDict()
            dropped | "write dropped" >> beam.Map(lambda dropped: records.write_json(shards.folder / DROPPED, dropped))
    except (ValueError, OSError) as error:
        kind = OSError if isinstance(error, OSError) else ValueError
        raise kind(str(error).partition(" [while running '")[0]) from error
    path = shards.folder / DROPPED
    dropped = records.read_json(path)
    path.unlink()
    return dropped


def _read(part, parts, settings, filters, shards, wanted):
    """The tokenized pairs of a part, and what the filters dropped of it."""
    from apache_beam.pvalue import TaggedOutput

    dropped = collections.Counter()
    pairs = sharding.kept(corpora.stream(**settings, part=part, parts=parts), filters, dropped)
    yield from sharding.tokenized(pairs, shards.model, shards.number, wanted)
    yield from (TaggedOutput("dropped", reason) for reason in dropped.items())
