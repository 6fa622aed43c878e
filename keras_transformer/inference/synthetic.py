"""Pairs of which a model wrote one side, as files and a mixture: what teachers make of sources (Kim
and Rush 2016, "Sequence-Level Knowledge Distillation"), of targets (Sennrich et al. 2016), or of
both (data diversification, Nguyen et al. 2020).
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

# Of forward translations beside backward ones.
FORWARD_WEIGHT = 0.5
LANGUAGES = ("source_language", "target_language")
# What is lost at most when a command is killed.
SHARD_LINES = 2000


def write_synthetic(
    teachers, settings: Mapping, corpus: Corpus, folder: pathlib.Path, **how: int | None
) -> pathlib.Path:
    """Translate a corpus by teachers, and write the pairs as a mixture, whose file is returned.
    What is translated already is not again.
    """
    member = member_of(settings)
    texts = (corpus.train.sources, corpus.train.targets)
    paths = (teachers.teacher, teachers.back_translate)
    languages = [member[name] for name in LANGUAGES]
    _check(teachers, languages, paths)
    files = [_files(teachers, folder, *side) for side in zip(paths, languages, texts, strict=True)]
    best = {"beam_size": teachers.teacher_beam_size} if teachers.teacher_beam_size else {}
    drawn = {"samples": 1, "temperature": teachers.drawing_temperature}
    seeds = range(1, teachers.drawn_translations + 1)
    ways = ([best], [best, *({**drawn, "seed": seed} for seed in seeds)])
    pure = teachers.training_text and not teachers.back_translate
    weight = (0.0 if pure else 1.0) if teachers.real_weight is None else teachers.real_weight
    known = set(zip(*texts, strict=True)) if weight else set()
    synthetic = []
    for backward, name in enumerate(("forth", "back")):
        pairs: dict[tuple[str, str], None] = {}
        for place, file in enumerate(files[backward]):
            others = "another-" * sum(one.name == file.name for one in files[backward][:place])
            to = folder / "shards" / f"{name}-{others}{file.name}"
            found = [
                _translations(paths[backward], file, f"{to}-{number}", options, how)
                for number, options in enumerate(ways[backward])
            ]
            pairs |= dict.fromkeys(new_pairs(file, found, bool(backward), known))
        synthetic.append(list(pairs))
    forth, back = synthetic
    if not forth and not back:
        raise ValueError(f"no translation is new. Remove {folder}, or name other teachers.")
    print(f"{len(forth):,} pairs of forward translation, {len(back):,} of backward translation")
    return write_mixture(folder, member, (len(corpus.train), weight), forth, back)


def require_student(model_dir: str) -> None:
    """Refuse, before anything is translated for it, a run that learns from no mixture."""
    run = RunFolder(model_dir)
    run.refuse_finished()
    corpus = run.read_description().get("corpus", {}) if run.is_started else {"name": "mixture"}
    if (name := corpus.get("name", "unknown")) != "mixture":
        raise ValueError(
            f"{model_dir} holds another run, of the corpus {name}. Name another --model_dir."
        )


def _files(teachers, folder, path, language, text):
    """The files of one language that a teacher translates."""
    files = [one for one in _named(teachers) if _is_of(one, language)]
    for file in files:
        if not any(read_lines(file)):
            raise ValueError(f"--monolingual: {file} holds no text. Fill it, or leave it out.")
    if path and teachers.training_text:
        # Beside the shards: the folder may be that of the corpus, whose files have such names.
        write_lines(folder / "shards" / f"train.{language}", text)
        files.insert(0, folder / "shards" / f"train.{language}")
    return files


def _named(teachers):
    return [pathlib.Path(one) for one in (teachers.monolingual or "").split(",") if one]


def _is_of(file, language):
    return file.name.removesuffix(".gz").endswith(f".{language}")


def _translations(path, file, prefix, options, how):
    """What a teacher makes of the lines of a file, by their number."""
    named = ",".join(map(os.path.abspath, path.split(",")))
    of = {"path": named, "runs": weights_of_runs(path), "options": options}
    plan = bulk.Plan.of(glob.escape(str(file)), prefix, SHARD_LINES, "", of)
    lacking = plan.shards_to_write()
    if lacking:
        print(f"{path} translates {file}: {len(lacking)} of {len(plan.shards)} shards", flush=True)
        teacher = Translator.load(path, **options)
    for shard in lacking:
        batches = (
            bulk.translated(batch, lambda lines: teacher.translate(lines, **how))
            for _, batch in bulk.read(file, [shard])
        )
        plan.write(shard.number, batches)
    written = (plan.path(shard) for shard in plan.shards)
    rows = (line.partition("\t") for path in written for line in read_lines(path))
    return {int(number): translation for number, _, translation in rows}


def _check(teachers, languages, paths):
    """Refuse teachers of other directions, and text that none of them reads."""
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
    for file in _named(teachers):
        if not any(_is_of(file, language) for language in read):
            raise ValueError(
                f"--monolingual must name files whose names end in .{' or .'.join(read)}, which a "
                f"teacher translates. Received: {file}. Rename it, or name the other teacher."
            )


def write_lines(path: pathlib.Path, lines: Iterable[str]) -> None:
    """Write a file of lines; a text that has line breaks is an empty one."""
    write_text(path, "".join("\n" if "\n" in line else f"{line}\n" for line in lines))


def new_pairs(
    file: pathlib.Path,
    translations: Sequence[Mapping[int, str]],
    backward: bool,
    known: Collection[tuple[str, str]],
) -> list[tuple[str, str]]:
    """The pairs of a file's lines (`backward`: targets) and their translations, by the number of
    the line from 1, each once, without those that are known.
    """
    pairs: dict[tuple[str, str], None] = {}
    for number, line in enumerate(read_lines(file), 1):
        for way in (one.get(number) for one in translations):
            pair = (way, line) if backward else (line, way)
            if line and way and pair not in known:
                pairs[pair] = None
    return list(pairs)


def write_mixture(
    folder: pathlib.Path,
    corpus: dict,
    real: tuple[int, float],
    forth: Sequence[tuple[str, str]],
    back: Sequence[tuple[str, str]],
) -> pathlib.Path:
    """Write forth.*, back.* and mixture.json, which is returned: the pairs of the corpus, forward
    translations, with a weight of one half if there are backward ones, and these with a weight by
    which an epoch has as many of them as the corpus has pairs. `corpus` is what `member_of` gives;
    `real` is the number of its pairs to train on, and their weight.
    """
    count, weight = real
    digits = 3 if len(back) < 100 * count else 9
    weights = (FORWARD_WEIGHT if back else 1.0, round(count / max(len(back), 1), digits))
    members = [{**corpus, "weight": weight}]
    for prefix, pairs, one in zip(("forth", "back"), (forth, back), weights, strict=True):
        if pairs:
            members.append({**_member(folder, prefix, corpus, pairs), "weight": one})
    write_json(folder / "mixture.json", {"corpora": members})
    return folder / "mixture.json"


def _member(folder, prefix, corpus, pairs):
    """Write two files of lines. Gives the member of a mixture that trains on them alone."""
    for key, lines in zip(LANGUAGES, zip(*pairs, strict=True), strict=True):
        write_lines(folder / f"{prefix}.{corpus[key]}", lines)
    languages = {key: corpus[key] for key in LANGUAGES}
    return {"corpus": "text_files", **languages, "data_dir": ".", "prefixes": [prefix, None, None]}
