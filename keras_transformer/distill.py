"""Train a student on translations by teachers: `python -m keras_transformer.distill
--teacher=runs/en_de --flagfile=student.flags --model_dir=runs/student`.

The other flags are those of `train`. The command has three methods:

- --teacher: the student learns the teacher's beam translations of the sources in place of the
  references (Kim and Rush 2016, "Sequence-Level Knowledge Distillation").
- --back_translate: a teacher of the other direction translates text of the target language, and
  the student learns these pairs besides the real ones (Sennrich et al. 2016).
- both: data diversification (Nguyen et al. 2020).

Translations are written in shards, and the pairs in a mixture (`inference.synthetic`). The same
command again makes the missing translations and resumes the training. The validation and test
splits are those of the corpus.
"""

import pathlib

from keras_transformer import flags
from keras_transformer.flags.of_commands import DecodeTokens, Dump
from keras_transformer.prepare import Prepared
from keras_transformer.tasks import TASKS, TRAINING, TaskChoice, task_class
from pipelines.options import Options, option, settings


class Teachers(Options):
    """Teachers."""

    needs = (("task", ("translation",)),)

    teacher: str | None = option(
        None,
        "Model from source to target: a run, a SavedModel, or graphs of ONNX or LiteRT.",
        path=True,
    )
    back_translate: str | None = option(
        None, "Model from target to source. Its translations are the student's sources.", path=True
    )
    monolingual: str | None = option(
        None,
        "Files of text in one language, joined by commas, whose names end in it: more.en, "
        "more.de.gz. The teacher that reads this language translates them too.",
        path=True,
    )
    training_text: bool = option(
        True, "Translate the training split. --notraining_text: translate --monolingual alone."
    )
    real_weight: float | None = option(
        None,
        "How many times an epoch trains on each pair of the corpus itself. Default: 0 if --teacher "
        "alone translates the training text, else 1.",
        at_least=0,
    )
    teacher_beam_size: int | None = option(
        None, "Beam size of the teachers. Default: each teacher's own.", at_least=1
    )
    drawn_translations: int = option(
        2, "For --back_translate: sampled translations of a line, besides the best.", at_least=0
    )
    drawing_temperature: float = option(0.7, "Temperature of --drawn_translations.", at_least=1e-9)


SECTIONS = (TaskChoice, Teachers, Prepared, DecodeTokens, *TRAINING, Dump)
OF_TASKS = {"translation": TASKS["translation"].options}
EVERYDAY = (*settings(Teachers), "output_dir", "model_dir")


def main(FLAGS):
    from keras_transformer.inference.synthetic import require_student, write_synthetic
    from keras_transformer.models.learned_part import choose_learned
    from keras_transformer.startup import cores
    from keras_transformer.streams import require_folder
    from keras_transformer.tasks.corpus_settings import DEFAULTS, corpus_settings, load
    from keras_transformer.train import run_of, train
    from keras_transformer.training.checkpoint import LOW_RANK

    model_dir = flags.required(FLAGS, "model_dir")
    if not (FLAGS.teacher or FLAGS.back_translate):
        raise ValueError(flags.REQUIRED["teacher"])
    folder = pathlib.Path(FLAGS.output_dir or f"{pathlib.Path(model_dir)}_text")
    for name, path in (("model_dir", model_dir), ("output_dir", folder)):
        require_folder(f"--{name}={path}", path)
    require_student(model_dir)
    values = FLAGS.flag_values_dict()
    settings = corpus_settings(values)
    changed = {name: DEFAULTS[name] for name in DEFAULTS.keys() - {"seed", "cache_dir", "strict"}}
    changed |= {"corpus": "mixture", "mixture": str(folder / "mixture.json")}
    run = run_of(task_class("translation"), FLAGS, **changed)  # Before hours of translating.
    if FLAGS.freeze or FLAGS.lora_rank:
        sizes = {**run.task.hyperparameters.as_dict(), "vocabulary_size": 4}  # It has no names.
        model = run.task.module_class.build({"hyperparameters": sizes}, None)
        choose_learned(model, run.values, LOW_RANK)
    corpus = load(settings, values)
    batching = {"batch_tokens": FLAGS.decode_tokens, "batches_at_once": cores()}
    write_synthetic(Teachers.of(values), settings, corpus, folder, **batching)
    train(task_class("translation"), FLAGS, **changed)


if __name__ == "__main__":
    flags.run(main, SECTIONS, OF_TASKS, EVERYDAY)
