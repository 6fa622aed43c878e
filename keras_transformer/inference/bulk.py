"""Files of lines to shards of translations, by workers of Apache Beam.

A shard has the lines of one file from a place on, each with its number in the whole input. It is
written whole, when all its lines are there, and its batches depend on its own lines alone. So a run
that was killed makes only the shards that lack, and the bytes are those of a run that was not.
"""

import dataclasses
import glob
import hashlib
import itertools
import logging
import os
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from keras_transformer.inference.line_batches import BATCH_TOKENS, batches_of_tokens
from keras_transformer.runs.model_path import ModelPath
from pipelines.documents import format_of
from pipelines.json_files import MOST_BYTES_OF_LISTS, read_object
from pipelines.line_files import as_lines, byte_lines, decode, open_bytes
from pipelines.prepare.beam_runner import pipeline_of
from pipelines.whole_files import write_json, write_text

# Of the lines that a worker gets at once: a few batches of tokens, which the model counts itself.
BATCH_BYTES = 32768
SHARD = "{plan.prefix}-{shard.number:05d}-of-{count:05d}.tsv{plan.suffix}"
FAILED = "{plan.prefix}-{shard.number:05d}-of-{count:05d}.failed.tsv{plan.suffix}"


class Shard(NamedTuple):
    """Lines of a file: number of the shard, the file, how many lines come before, how many it has,
    and the number of the first in the whole input, from 1.
    """

    number: int
    file: str
    skipped: int
    lines: int
    first: int


class Line(NamedTuple):
    """A line, or what became of it: a translation, or the reason why there is none."""

    number: int
    text: str
    translation: str | None = None
    reason: str | None = None


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is translated, by all shards, and where to: a prefix and a suffix of all names, ".gz"
    where the shards are compressed.
    """

    prefix: str
    shards: tuple[Shard, ...]
    suffix: str

    @classmethod
    def of(cls, pattern: str, prefix: str, shard_lines: int, suffix: str, model: Mapping) -> "Plan":
        """Read all files once, and write what the shards are made of into PREFIX.json: where a file
        lies is not part of it.
        """
        shards = glob.glob(f"{glob.escape(prefix)}-*-of-*.tsv*")
        own = {os.path.abspath(name) for name in (f"{prefix}.json", *shards)}
        found = filter(os.path.isfile, glob.glob(pattern, recursive=True))
        names = sorted(name for name in found if os.path.abspath(name) not in own)
        if not names:
            raise FileNotFoundError(f"--input={pattern} names no file. Name one, or a pattern.")
        if others := [name for name in names if format_of(name) != "lines"]:
            raise ValueError(
                f"--input={pattern} must name files of lines. Received: {others[0]}. Try python "
                "-m keras_transformer.translate; if it has lines, give it another ending."
            )
        record = pathlib.Path(f"{prefix}.json")
        remedy = "Name another --output."
        known = read_object(record, remedy, MOST_BYTES_OF_LISTS) if record.exists() else {}
        files = [_content(name) for name in names]
        if not any(file["lines"] for file in files):
            raise ValueError(f"--input={pattern}: all that it names is empty. Name another text.")
        if not shards:
            known = {}  # Nothing was made.
        made = {"model": model, "shard_lines": shard_lines, "suffix": suffix, "files": files}
        for name, value in made.items():
            if known and known.get(name) != value:
                raise ValueError(
                    f"{record} says that the shards were made with other {name}: "
                    f"{str(known.get(name))[:200]}. Received: {str(value)[:200]}. Write elsewhere, "
                    "or remove what is there."
                )
        write_json(record, made)
        return cls(prefix, tuple(_parts(names, files, shard_lines)), suffix)

    def path(self, shard: Shard, pattern: str = SHARD) -> pathlib.Path:
        """The file of a shard, or that of its lines that failed."""
        return pathlib.Path(pattern.format(plan=self, shard=shard, count=len(self.shards)))

    def shards_to_write(self) -> list[Shard]:
        """The shards that are not written."""
        return [shard for shard in self.shards if not self.path(shard).exists()]

    def write(self, number: int, batches: Iterable[list[Line]]) -> tuple[int, int]:
        """Write a shard of all its batches; how many lines it has, and how many of them failed."""
        shard = self.shards[number]
        lines = sorted(itertools.chain.from_iterable(batches), key=lambda line: line.number)
        numbers = [line.number for line in lines]
        if numbers != list(range(shard.first, shard.first + shard.lines)):
            raise ValueError(
                f"{shard.file} had {shard.lines:,} lines for shard {number}, and now has others. "
                "Leave the input alone, and run the same command again."
            )
        if failed := [line for line in lines if line.translation is None]:
            rows = ((one.number, one.reason, one.text) for one in failed)
            self._write(self.path(shard, FAILED), rows)
        else:
            self.path(shard, FAILED).unlink(missing_ok=True)
        rows = ((one.number, one.translation) for one in lines if one.translation is not None)
        # Last: a shard that is there is done.
        self._write(self.path(shard), rows)
        return len(lines), len(failed)

    def _write(self, path, rows):
        cells = ([str(one).replace("\t", " ") for one in row] for row in rows)
        write_text(path, as_lines(map("\t".join, cells)))


def _content(name):
    """What a file holds: its name may be given to another text, or its text to another name."""
    digest = hashlib.sha256()
    lines = 0
    with open_bytes(name) as file:
        for line in byte_lines(file, name):
            digest.update(line)
            lines += 1
    return {"lines": lines, "sha256": digest.hexdigest()}


def _parts(names, files, shard_lines):
    first = 1
    number = 0
    for name, file in zip(names, files, strict=True):
        for skipped in range(0, file["lines"], shard_lines):
            lines = min(shard_lines, file["lines"] - skipped)
            yield Shard(number, name, skipped, lines, first)
            first += lines
            number += 1


def read(name: str, shards: list[Shard]) -> Iterator[tuple[int, list[Line]]]:
    """The lines of some shards of a file: each shard's number and a batch of its lines, of similar
    length. A line that is not UTF-8 has its reason already, in a batch of its own.
    """
    with open_bytes(name) as file:
        lines = byte_lines(file, name)
        at = 0
        for shard in shards:
            between = shard.skipped - at
            of_shard = [*itertools.islice(lines, between, between + shard.lines)]
            at = shard.skipped + shard.lines
            texts = []
            for number, line in enumerate(of_shard, shard.first):
                try:
                    texts.append(Line(number, decode(line, name, at)))
                except ValueError:
                    text = line.decode("utf-8", errors="replace").strip()
                    yield shard.number, [Line(number, text, reason="It is not UTF-8.")]
            lengths = [1 + len(line.text.encode("utf-8", errors="replace")) for line in texts]
            for batch in batches_of_tokens(lengths, BATCH_BYTES):
                yield shard.number, [texts[one] for one in batch]


def translated(batch: list[Line], translate: Callable[[list[str]], list[str]]) -> list[Line]:
    """A batch with its translations. If the model refuses it, its halves are tried, and a line that
    it refuses alone has its reason.
    """
    if batch[0].reason:
        return batch
    try:
        found = translate([line.text for line in batch])
    except ValueError as error:
        if len(batch) == 1:
            return [batch[0]._replace(reason=str(error))]
        middle = len(batch) // 2
        return [*translated(batch[:middle], translate), *translated(batch[middle:], translate)]
    return [line._replace(translation=one) for line, one in zip(batch, found, strict=True)]


def handler(path: str, precision: str, options: Mapping, **how):
    """Beam's `ModelHandler` of a translator: a batch is an element of its `RunInference`."""
    from apache_beam.ml.inference.base import ModelHandler

    if ModelPath.listed(path)[0].version:
        from keras_transformer.inference.exported import request

        request(options, None)  # What a SavedModel does not take is refused at once.
    how["batch_tokens"] = how.get("batch_tokens") or BATCH_TOKENS

    class TranslatorHandler(ModelHandler):
        """Translates batches of lines, which `read` made."""

        def load_model(self):
            from keras_transformer.inference.translator import Translator

            return Translator.load(path, precision, **options)

        def run_inference(self, batch, model, inference_args=None):
            number, lines = batch
            return [(number, translated(lines, lambda texts: model.translate(texts, **how)))]

        def should_skip_batching(self):
            return True

    return TranslatorHandler()


def run(plan: Plan, model_handler, options, at_once: int | None = None) -> int:
    """Make the shards that lack, `at_once` in one pass, which Beam's own runner holds in memory, or
    all: how many lines they have.
    """
    # Beam warns the root logger of clients and figures that nothing here needs.
    logging.disable(logging.WARNING)
    lines = 0
    try:
        while lacking := plan.shards_to_write()[:at_once]:
            _run(plan, lacking, model_handler, options)
            if left := [shard for shard in lacking if not plan.path(shard).exists()]:
                raise OSError(
                    f"{plan.path(left[0])} was not written: all workers must see the folder of "
                    "--output. Name one that they share."
                )
            lines += sum(shard.lines for shard in lacking)
        return lines
    finally:
        logging.disable(logging.NOTSET)


def _run(plan, shards, model_handler, options):
    import apache_beam as beam
    from apache_beam.ml.inference.base import RunInference

    files = [(name, [*some]) for name, some in itertools.groupby(shards, lambda one: one.file)]
    with pipeline_of(options) as pipeline:
        (
            pipeline
            | "files" >> beam.Create(files)
            | "spread files" >> beam.Reshuffle()
            | "read" >> beam.FlatMapTuple(read)
            | "spread batches" >> beam.Reshuffle()
            | "translate" >> RunInference(model_handler)
            | "gather" >> beam.GroupByKey()
            | "write" >> beam.MapTuple(plan.write)
        )
