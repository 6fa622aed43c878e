"""Synthetic sentence pairs, one side written by a teacher, as files and a mixture: translations of
sources (Kim and Rush 2016, "Sequence-Level Knowledge Distillation"), of targets (back-translation,
Sennrich et al. 2016), or of both (data diversification, Nguyen et al. 2020).
"""

import glob
import os
import pathlib
from collections.abc import Collection, Iterable, Mapping, Sequence

from keras_transformer.inference import bulk
from keras_transformer.inference.translator import Translator
from keras_transformer.runs.folder import RunFolder
from keras_transformer.runs.model_path import description_of, weights_of_runs
from pipelines.corpora import Corpus
from pipelines.corpora.mixture import member_of
from pipelines.line_files import read_lines
from pipelines.whole_files import write_json, write_text

# The weight of forward translations in a mixture that also has backward ones.
FORWARD_WEIGHT = 0.5
LANGUAGES = ("source_language", "target_language")
# A killed command loses at most a shard.
SHARD_LINES = 2000


def write_synthetic(
    teachers, settings: Mapping, corpus: Corpus, folder: pathlib.Path, **batching: int | None
) -> pathlib.Path:
    """Translate a corpus by its teachers, write the pairs as a mixture, and return the mixture's
    file. Translations that an earlier run wrote are reused.
    """
    member = member_of(settings)
    texts = (corpus.train.sources, corpus.train.targets)
    paths = (teachers.teacher, teachers.back_translate)
    languages = [member[name] for name in LANGUAGES]
    _check(teachers, languages, paths)
    files = [_files(teachers, folder, *side) for side in zip(paths, languages, texts, strict=True)]
    best = {"beam_size": teachers.teacher_beam_size} if teachers.teacher_beam_size else {}
    sampling = {"samples": 1, "temperature": teachers.drawing_temperature}
    seeds = range(1, teachers.drawn_translations + 1)
    searches = ([best], [best, *({**sampling, "seed": seed} for seed in seeds)])
    pure = teachers.training_text and not teachers.back_translate
    weight = (0.0 if pure else 1.0) if teachers.real_weight is None else teachers.real_weight
    real = set(zip(*texts, strict=True)) if weight else set()
    synthetic = []
    for backward, name in enumerate(("forth", "back")):
        pairs: dict[tuple[str, str], None] = {}
        for place, file in enumerate(files[backward]):
            again = "another-" * sum(path.name == file.name for path in files[backward][:place])
            prefix = folder / "shards" / f"{name}-{again}{file.name}"
            translations = [
                _translations(paths[backward], file, f"{prefix}-{number}", options, batching)
                for number, options in enumerate(searches[backward])
            ]
            pairs |= dict.fromkeys(new_pairs(file, translations, bool(backward), real))
        synthetic.append(list(pairs))
    forth, back = synthetic
    if not forth and not back:
        raise ValueError(f"no translation is new. Remove {folder}, or name other teachers.")
    print(f"{len(forth):,} pairs of forward translation, {len(back):,} of backward translation")
    return write_mixture(folder, member, (len(corpus.train), weight), forth, back)


def require_student(model_dir: str) -> None:
    """Refuse a run that does not train on a mixture, before anything is translated for it."""
    run = RunFolder(model_dir)
    run.refuse_finished()
    corpus = run.read_description().get("corpus", {}) if run.is_started else {"name": "mixture"}
    if (name := corpus.get("name", "unknown")) != "mixture":
        raise ValueError(
            f"{model_dir} holds another run, of the corpus {name}. Name another --model_dir."
        )


def _files(teachers, folder, path, language, text):
    """Return the files of one language that a teacher translates."""
    files = [file for file in _monolingual(teachers) if _is_of(file, language)]
    for file in files:
        if not any(read_lines(file)):
            raise ValueError(f"--monolingual: {file} holds no text. Fill it, or leave it out.")
    if path and teachers.training_text:
        # Among the shards, since `folder` may hold the corpus, whose files have the same names.
        write_lines(folder / "shards" / f"train.{language}", text)
        files.insert(0, folder / "shards" / f"train.{language}")
    return files


def _monolingual(teachers):
    return [pathlib.Path(name) for name in (teachers.monolingual or "").split(",") if name]


def _is_of(file, language):
    return file.name.removesuffix(".gz").endswith(f".{language}")


def _translations(path, file, prefix, options, batching):
    """Return a teacher's translations of the lines of a file, by the number of the line."""
    models = ",".join(map(os.path.abspath, path.split(",")))
    model = {"path": models, "runs": weights_of_runs(path), "options": options}
    plan = bulk.Plan.of(glob.escape(str(file)), prefix, SHARD_LINES, "", model)
    missing = plan.shards_to_write()
    if missing:
        print(f"{path} translates {file}: {len(missing)} of {len(plan.shards)} shards", flush=True)
        teacher = Translator.load(path, **options)
    for shard in missing:
        batches = (
            bulk.translated(batch, lambda lines: teacher.translate(lines, **batching))
            for _, batch in bulk.read(file, [shard])
        )
        plan.write(shard.number, batches)
    written = (plan.path(shard) for shard in plan.shards)
    rows = (line.partition("\t") for path in written for line in read_lines(path))
    return {int(number): translation for number, _, translation in rows}


def _check(teachers, languages, paths):
    """Refuse teachers that translate in another direction, and text that no teacher reads."""
    for name, path, direction in zip(
        ("teacher", "back_translate"), paths, (languages, languages[::-1]), strict=True
    ):
        corpus = description_of(path).get("corpus", {}) if path else {}
        own = [corpus.get(key) for key in LANGUAGES]
        if all(own) and own != direction:
            raise ValueError(
                f"--{name} must translate {direction[0]} into {direction[1]}. Received: {path}, "
                f"which translates {own[0]} into {own[1]}. Name another."
            )
    if not teachers.training_text and not teachers.monolingual:
        raise ValueError("--notraining_text is for --monolingual. Name its files, or leave it out.")
    read = [language for language, path in zip(languages, paths, strict=True) if path]
    for file in _monolingual(teachers):
        if not any(_is_of(file, language) for language in read):
            raise ValueError(
                f"--monolingual must name files whose names end in .{' or .'.join(read)}, which a "
                f"teacher translates. Received: {file}. Rename it, or name the other teacher."
            )


def write_lines(path: pathlib.Path, lines: Iterable[str]) -> None:
    """Write a file of lines; a text that contains a line break becomes an empty line."""
    write_text(path, "".join("\n" if "\n" in line else f"{line}\n" for line in lines))


def new_pairs(
    file: pathlib.Path,
    translations: Sequence[Mapping[int, str]],
    backward: bool,
    real: Collection[tuple[str, str]],
) -> list[tuple[str, str]]:
    """Return the distinct pairs (source, target) of a file's lines (`backward`: targets) and their
    translations, by the line's number from 1, without the `real` pairs. Print how many have an
    empty side, and are left out.
    """
    pairs: dict[tuple[str, str], None] = {}
    empty = 0
    for number, line in enumerate(read_lines(file), 1):
        for translation in (by_number.get(number) for by_number in translations):
            pair = (translation, line) if backward else (line, translation)
            if not (line and translation):
                empty += 1
            elif pair not in real:
                pairs[pair] = None
    if empty:
        print(f"{file}: {empty:,} left out for an empty side; *.failed.tsv say why a line has none")
    return list(pairs)


def write_mixture(
    folder: pathlib.Path,
    corpus: dict,
    real: tuple[int, float],
    forth: Sequence[tuple[str, str]],
    back: Sequence[tuple[str, str]],
) -> pathlib.Path:
    """Write the files forth.* and back.*, and a mixture of them and the corpus, mixture.json, whose
    path is returned. Forward translations weigh one half if there are backward ones; the weight of
    these makes an epoch have as many of them as the corpus has pairs. `corpus` comes from
    `member_of`; `real` is the number of its training pairs, and their weight.
    """
    count, weight = real
    digits = 3 if len(back) < 100 * count else 9
    weights = (FORWARD_WEIGHT if back else 1.0, round(count / max(len(back), 1), digits))
    members = [{**corpus, "weight": weight}]
    for prefix, pairs, member_weight in zip(("forth", "back"), (forth, back), weights, strict=True):
        if pairs:
            members.append({**_member(folder, prefix, corpus, pairs), "weight": member_weight})
    write_json(folder / "mixture.json", {"corpora": members})
    return folder / "mixture.json"


def _member(folder, prefix, corpus, pairs):
    """Write pairs as two files of lines, and return the member of a mixture that trains on them."""
    for key, lines in zip(LANGUAGES, zip(*pairs, strict=True), strict=True):
        write_lines(folder / f"{prefix}.{corpus[key]}", lines)
    languages = {key: corpus[key] for key in LANGUAGES}
    return {"corpus": "text_files", **languages, "data_dir": ".", "prefixes": [prefix, None, None]}
