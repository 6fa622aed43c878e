"""Translate files of lines into shards, by workers of Apache Beam.

A shard holds consecutive lines of one file, each with its number in the whole input. It is written
in one piece, once all its lines are translated, and its batches depend on its own lines alone. So
a run that was killed resumes with the missing shards, and writes the same bytes as an unbroken run.
"""

import dataclasses
import glob
import hashlib
import itertools
import logging
import os
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from keras_transformer.inference.line_batches import BATCH_TOKENS, batches_of_tokens
from keras_transformer.runs.model_path import ModelPath
from pipelines.documents import format_of
from pipelines.json_files import MOST_BYTES_OF_LISTS, read_object
from pipelines.line_files import as_lines, byte_lines, decode, open_bytes
from pipelines.prepare.beam_runner import pipeline_of
from pipelines.whole_files import write_json, write_text

# Bytes of lines that a worker gets at once: a few batches, whose tokens the model counts itself.
BATCH_BYTES = 32768
SHARD = "{plan.prefix}-{shard.number:05d}-of-{count:05d}.tsv{plan.suffix}"
FAILED = "{plan.prefix}-{shard.number:05d}-of-{count:05d}.failed.tsv{plan.suffix}"


class Shard(NamedTuple):
    """Consecutive lines of a file: the shard's number, the file, the lines skipped before it, its
    own lines, and the number of the first in the whole input, counted from 1.
    """

    number: int
    file: str
    skipped: int
    lines: int
    first: int


class Line(NamedTuple):
    """A line with its translation, or with the reason why it has none; at first with neither."""

    number: int
    text: str
    translation: str | None = None
    reason: str | None = None


@dataclasses.dataclass(frozen=True)
class Plan:
    """All shards of a translation, and the prefix and the suffix of their files' names (".gz" if
    they are compressed).
    """

    prefix: str
    shards: tuple[Shard, ...]
    suffix: str

    @classmethod
    def of(cls, pattern: str, prefix: str, shard_lines: int, suffix: str, model: Mapping) -> "Plan":
        """Read all files once, and record in PREFIX.json what the shards depend on: the files'
        contents, not their paths. Refuse to continue shards of another model, size or text.
        """
        # Not those of another prefix, such as PREFIX-2019.
        last = re.escape(os.path.basename(prefix))
        form = re.compile(rf"(?:.*/)?{last}-\d+-of-\d+(?:\.failed)?\.tsv(?:\.gz)?", re.DOTALL)
        shards = [*filter(form.fullmatch, glob.glob(f"{glob.escape(prefix)}-*.tsv*"))]
        own = {os.path.abspath(name) for name in (f"{prefix}.json", *shards)}
        matches = filter(os.path.isfile, glob.glob(pattern, recursive=True))
        names = sorted(name for name in matches if os.path.abspath(name) not in own)
        if not names:
            raise FileNotFoundError(f"--input={pattern} names no file. Name one, or a pattern.")
        if documents := [name for name in names if format_of(name) != "lines"]:
            raise ValueError(
                f"--input={pattern} must name files of lines. Received: {documents[0]}. Try python "
                "-m keras_transformer.translate; if it has lines, give it another ending."
            )
        path = pathlib.Path(f"{prefix}.json")
        remedy = "Name another --output."
        earlier = read_object(path, remedy, MOST_BYTES_OF_LISTS) if path.exists() else {}
        files = [_content(name) for name in names]
        if not any(file["lines"] for file in files):
            raise ValueError(f"--input={pattern}: all that it names is empty. Name another text.")
        record = {"model": model, "shard_lines": shard_lines, "suffix": suffix, "files": files}
        if shards and not earlier:
            raise ValueError(
                f"{path} says what {shards[0]} was made with, and is missing. Put it back, write "
                "elsewhere, or remove the shards."
            )
        for name, value in record.items():
            before = earlier.get(name)
            if shards and before != value:
                raise ValueError(
                    f"{path} says that the shards were made with other {name}: "
                    f"{_own(before, value)}. Received: {_own(value, before)}. Write elsewhere, or "
                    "remove what is there."
                )
        write_json(path, record)
        return cls(prefix, tuple(_shards(names, files, shard_lines)), suffix)

    def path(self, shard: Shard, pattern: str = SHARD) -> pathlib.Path:
        """Return the file of a shard, or (with the pattern FAILED) that of its failed lines."""
        return pathlib.Path(pattern.format(plan=self, shard=shard, count=len(self.shards)))

    def shards_to_write(self) -> list[Shard]:
        """Return the shards that are not written yet."""
        return [shard for shard in self.shards if not self.path(shard).exists()]

    def write(self, number: int, batches: Iterable[list[Line]]) -> tuple[int, int]:
        """Write a shard from all its batches. Return its number of lines, and of failed lines."""
        shard = self.shards[number]
        lines = sorted(itertools.chain.from_iterable(batches), key=lambda line: line.number)
        numbers = [line.number for line in lines]
        if numbers != list(range(shard.first, shard.first + shard.lines)):
            raise ValueError(
                f"{shard.file} had {shard.lines:,} lines for shard {number}, and now has others. "
                "Leave the input alone, and run the same command again."
            )
        if failed := [line for line in lines if line.translation is None]:
            rows = ((line.number, line.reason, line.text) for line in failed)
            self._write(self.path(shard, FAILED), rows)
        else:
            self.path(shard, FAILED).unlink(missing_ok=True)
        rows = ((line.number, line.translation) for line in lines if line.translation is not None)
        # Last, since a shard that exists counts as done.
        self._write(self.path(shard), rows)
        return len(lines), len(failed)

    def _write(self, path, rows):
        cells = ([str(cell).replace("\t", " ") for cell in row] for row in rows)
        write_text(path, as_lines(map("\t".join, cells)))


def _own(value, reference):
    """Quote a value; of a mapping only the entries that differ from a reference's."""
    if isinstance(value, Mapping) and isinstance(reference, Mapping):
        value = {name: entry for name, entry in value.items() if entry != reference.get(name)}
    return str(value)[:200]


def _content(name):
    """Return a file's number of lines and checksum, which identify its text under any name."""
    digest = hashlib.sha256()
    lines = 0
    with open_bytes(name) as file:
        for line in byte_lines(file, name):
            digest.update(line)
            lines += 1
    return {"lines": lines, "sha256": digest.hexdigest()}


def _shards(names, files, shard_lines):
    first = 1
    number = 0
    for name, file in zip(names, files, strict=True):
        for skipped in range(0, file["lines"], shard_lines):
            lines = min(shard_lines, file["lines"] - skipped)
            yield Shard(number, name, skipped, lines, first)
            first += lines
            number += 1


def read(name: str, shards: list[Shard]) -> Iterator[tuple[int, list[Line]]]:
    """Yield the lines of some shards of a file in batches of similar length, with the shard's
    number. A line that is not UTF-8 comes in a batch of its own, with the reason.
    """
    with open_bytes(name) as file:
        lines = byte_lines(file, name)
        position = 0
        for shard in shards:
            gap = shard.skipped - position
            lines_of_shard = [*itertools.islice(lines, gap, gap + shard.lines)]
            position = shard.skipped + shard.lines
            texts = []
            for number, line in enumerate(lines_of_shard, shard.first):
                try:
                    texts.append(Line(number, decode(line, name, position)))
                except ValueError:
                    text = line.decode("utf-8", errors="replace").strip()
                    yield shard.number, [Line(number, text, reason="It is not UTF-8.")]
            lengths = [1 + len(line.text.encode("utf-8", errors="replace")) for line in texts]
            for batch in batches_of_tokens(lengths, BATCH_BYTES):
                yield shard.number, [texts[index] for index in batch]


def translated(batch: list[Line], translate: Callable[[list[str]], list[str]]) -> list[Line]:
    """Return a batch with its translations. If the model refuses it, translate its halves; a single
    line that it refuses gets the reason instead.
    """
    if batch[0].reason:
        return batch
    try:
        texts = translate([line.text for line in batch])
    except ValueError as error:
        if len(batch) == 1:
            return [batch[0]._replace(reason=str(error))]
        middle = len(batch) // 2
        return [*translated(batch[:middle], translate), *translated(batch[middle:], translate)]
    return [line._replace(translation=text) for line, text in zip(batch, texts, strict=True)]


def handler(path: str, precision: str, options: Mapping, **batching):
    """Return Beam's `ModelHandler` of a translator, whose `RunInference` takes whole batches."""
    from apache_beam.ml.inference.base import ModelHandler

    if ModelPath.listed(path)[0].version:
        from keras_transformer.inference.exported import request

        request(options, None)  # Refuse at once the options that a SavedModel does not take.
    batching["batch_tokens"] = batching.get("batch_tokens") or BATCH_TOKENS

    class TranslatorHandler(ModelHandler):
        def load_model(self):
            from keras_transformer.inference.translator import Translator

            return Translator.load(path, precision, **options)

        def run_inference(self, batch, model, inference_args=None):
            number, lines = batch
            return [(number, translated(lines, lambda texts: model.translate(texts, **batching)))]

        def should_skip_batching(self):
            return True

    return TranslatorHandler()


def run(plan: Plan, model_handler, options, at_once: int | None = None) -> int:
    """Write the missing shards, and return their number of lines. A pass, which Beam's own runner
    holds in memory, writes `at_once` shards; None: all.
    """
    # Beam logs warnings about clients and metrics that are not used here.
    logging.disable(logging.WARNING)
    lines = 0
    try:
        while missing := plan.shards_to_write()[:at_once]:
            _run(plan, missing, model_handler, options)
            if unwritten := [shard for shard in missing if not plan.path(shard).exists()]:
                raise OSError(
                    f"{plan.path(unwritten[0])} was not written: all workers must see the folder "
                    "of --output. Name one that they share."
                )
            lines += sum(shard.lines for shard in missing)
        return lines
    finally:
        logging.disable(logging.NOTSET)


def _run(plan, shards, model_handler, options):
    import apache_beam as beam
    from apache_beam.ml.inference.base import RunInference

    by_file = itertools.groupby(shards, lambda shard: shard.file)
    files = [(name, [*group]) for name, group in by_file]
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
