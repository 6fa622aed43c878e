"""Tokenize a corpus once, into records to train on (Vaswani et al. 2017, section 5.1): `python -m
keras_transformer.prepare --flagfile=toy.flags --output_dir=prepared/toy`.

The same command again resumes where it was interrupted.
"""

import pathlib
import shlex
import sys
import time

from keras_transformer import flags
from keras_transformer.training.options import Seed
from pipelines.corpora import CorpusChoice
from pipelines.options import Options, option
from pipelines.prepare.options import Preparation


class Prepared(Options):
    """Prepared corpus."""

    output_dir: str | None = option(
        None,
        "Folder of the prepared corpus; of distill's text, by default <model_dir>_text. The same "
        "command again makes only what is missing.",
        path="folder",
    )


SECTIONS = (Prepared, CorpusChoice, Seed, Preparation)
# Flags that only a newly learned vocabulary has a use for.
OF_LEARNING = ("vocabulary_size", "vocabularies", "vocabulary_model", "vocabulary_sentences")
# Further flags of `train`, by the kind of the vocabulary.
TIES = {"joint": (), "separate": ("--tie_embeddings=decoder",)}


def main(FLAGS):
    from keras_transformer.flags.recipes import recipe_of_records
    from keras_transformer.streams import require_folder
    from keras_transformer.tasks.corpus_settings import corpus_settings
    from pipelines import vocabularies
    from pipelines.prepare.preparation import describe, prepare

    started = time.monotonic()
    folder = flags.required(FLAGS, "output_dir")
    require_folder(f"--output_dir={folder}", folder)
    _refuse(FLAGS)
    values = {"cache_dir": None, "strict": False, **FLAGS.flag_values_dict()}
    preparation = Preparation.of({**values, "corpus": corpus_settings(values)})
    prepared = prepare(preparation, FLAGS.output_dir)
    print(describe(prepared))
    print(f"{FLAGS.output_dir} is ready after {time.monotonic() - started:.0f} s. Train on it:")
    ties = TIES[vocabularies.load(FLAGS.output_dir).kind]
    languages = {name: prepared[name] for name in ("source_language", "target_language")}
    of_corpus = ("--corpus=records", f"--data_dir={FLAGS.output_dir}", *ties)
    recipe = [*recipe_of_records(sys.argv[1:], languages), *of_corpus]
    print(f"  python -m keras_transformer.train {shlex.join(recipe)}")


def _refuse(FLAGS):
    """Refuse flags of the command line that change nothing."""
    from pipelines.prepare.preparation import chosen_vocabulary

    reason = "is for a vocabulary that is learned, and"
    if FLAGS.vocabulary:
        flags.refuse(OF_LEARNING, f"{reason} --vocabulary names one")
    elif chosen_vocabulary(None, pathlib.Path(FLAGS.output_dir).expanduser()):
        flags.refuse(OF_LEARNING, f"{reason} {FLAGS.output_dir} has one")


if __name__ == "__main__":
    flags.run(main, SECTIONS, on_interrupt=flags.stop_at_once)
