"""Translate files of any size with workers of Apache Beam: `python -m
keras_transformer.translate_corpus --model=PATH --input='text/*.gz' --output=translated/text`.

Shards are written whole. The same command again makes only the missing ones. The search is that of
section 6.1 of Vaswani et al. 2017, as in `translate`.
"""

import os
import time

from keras_transformer import flags
from keras_transformer.flags import of_commands
from pipelines.options import Options, again, like, option


class Bulk(Options):
    """Bulk."""

    input: str | None = again(of_commands.Lines, "input", None)
    output: str | None = again(of_commands.Output, "output", None)
    shard_lines: int = option(10000, "Maximum lines in a shard of translations.", at_least=1)
    gzip: bool = option(False, "Compress the shards.")
    processes: int = option(
        1, "Processes on this machine, without --runner. Each loads the model.", at_least=1
    )
    runner: str = option(
        "",
        "Runner of Apache Beam and its options, such as 'FlinkRunner --flink_master=host:8081'. "
        "Default: this machine.",
    )
    shards_at_once: int | None = option(
        None,
        "Shards in one pass. Without --runner their text must fit in memory. Default: all with "
        "--runner, else 20.",
        at_least=1,
    )


TRANSLATION = like(of_commands.TranslateOptions, without=("prefix_file", "glossary"))
SECTIONS = (*of_commands.SEARCHING, of_commands.DecodeTokens, TRANSLATION)
SECTIONS += (of_commands.Languages, Bulk)


def main(FLAGS):
    from keras_transformer.decoding.remembered_options import options_of_run
    from keras_transformer.inference import bulk
    from keras_transformer.runs.model_path import ModelPath, weights_of_runs
    from keras_transformer.startup import spread_over_cores
    from keras_transformer.streams import require_folder
    from pipelines.prepare.beam_runner import beam_options, of_processes
    from pipelines.whole_files import read_words

    model = flags.required(FLAGS, "model")
    _refuse(FLAGS)
    require_folder(f"--output={FLAGS.output}", os.path.dirname(FLAGS.output) or ".", "place")
    if FLAGS.processes > 1:
        pipeline_options = of_processes(FLAGS.processes, FLAGS.traceback)
    else:
        pipeline_options = beam_options(f"--runner={FLAGS.runner}" if FLAGS.runner else "")
    spread_over_cores()  # Each process translates a batch at a time, on a core.
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
    options = flags.translation_options(FLAGS)
    options_of_run(options, {})  # Refuses contradictions before all text is read.
    splitting = {"split_sentences": FLAGS.split_sentences, "batch_tokens": FLAGS.decode_tokens}
    path = ",".join(os.path.abspath(part.version or part.path) for part in ModelPath.listed(model))
    identity = {"path": path, "runs": weights_of_runs(model), "precision": FLAGS.precision}
    # The words themselves: their file may change under its name.
    words = {"forbidden": [*read_words(FLAGS.forbidden)]} if FLAGS.forbidden else {}
    identity |= {"options": options | words, **splitting}
    suffix = ".gz" if FLAGS.gzip else ""
    handler = bulk.handler(path, FLAGS.precision, options, **splitting)
    plan = bulk.Plan.of(FLAGS.input, FLAGS.output, FLAGS.shard_lines, suffix, identity)
    print(f"{len(plan.shards_to_write()):,} of {len(plan.shards):,} shards to make.", flush=True)
    began = time.monotonic()
    at_once = FLAGS.shards_at_once or (None if FLAGS.runner else 20)
    lines = bulk.run(plan, handler, pipeline_options, at_once)
    seconds = time.monotonic() - began
    rate = f"{lines:,} lines in {seconds:.1f} s, {lines / seconds:.1f} a second."
    print(rate if lines else "All shards are there already.")
    if failed := sum(plan.path(shard, bulk.FAILED).exists() for shard in plan.shards):
        print(f"Shards with lines that failed: {failed:,}, in {FLAGS.output}-*.failed.tsv{suffix}.")


def _refuse(FLAGS):
    """Refuse missing names of files, standard streams, and flags that exclude each other."""
    for name, meaning in (("input", "files, such as 'text/*.gz'"), ("output", "a prefix of files")):
        if (value := FLAGS[name].value) in (None, "-") or value.endswith("/"):
            raise ValueError(f"--{name} must name {meaning}. Received: {value}.")
    if FLAGS.num_hypotheses > 1:
        raise ValueError("--num_hypotheses must be 1: a line has room for one translation.")
    if FLAGS.runner and FLAGS.processes > 1:
        raise ValueError("--runner and --processes exclude each other. Leave one out.")


if __name__ == "__main__":
    flags.run(main, SECTIONS, on_interrupt=flags.stop_at_once)
