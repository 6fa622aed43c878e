"""Tokenize a corpus once, into records to train on: `python -m keras_transformer.prepare
--flagfile=toy.flags --output_dir=prepared/toy`.

The same command again resumes where it was interrupted (Vaswani et al. 2017, section 5.1).
"""

import logging
import os
import pathlib
import signal
import sys
import time

from keras_transformer import flags
from keras_transformer.flags.of_commands import PreparationOptions
from keras_transformer.training.options import Seed
from pipelines.corpora import CorpusChoice
from pipelines.vocabularies.options import VocabularyOptions

SECTIONS = (CorpusChoice, Seed, VocabularyOptions, PreparationOptions)
# Flags whose values are arguments of `Preparation`, by the same name.
ARGUMENTS = (
    "cache_dir",
    "vocabulary",
    "vocabularies",
    "vocabulary_size",
    "vocabulary_model",
    "vocabulary_sentences",
    "shards",
    "deduplicate",
    "max_length_ratio",
    "filter_untranslated",
    "filter_scripts",
    "shards_at_a_time",
    "parts",
    "beam_options",
    "strict",
)
# Flags of a vocabulary that is learned.
OF_LEARNING = ("vocabulary_size", "vocabularies", "vocabulary_model", "vocabulary_sentences")
# What training needs besides, by the kind of the vocabulary.
TIES = {"joint": "", "separate": " --tie_embeddings=decoder"}


def main(FLAGS):
    from keras_transformer.flags.recipes import recipe_of_records
    from keras_transformer.tasks.corpus_settings import corpus_settings
    from pipelines import vocabularies
    from pipelines.corpora import manifest
    from pipelines.prepare.preparation import Preparation, prepare

    started = time.monotonic()
    if not FLAGS.output_dir:
        raise ValueError(
            "--output_dir is missing: the folder of the prepared corpus, such as prepared/mine."
        )
    _refuse(FLAGS)
    # Errors in Beam are raised, and printed in one line.
    logging.getLogger("apache_beam.runners").setLevel(logging.CRITICAL)
    given = {name: getattr(FLAGS, name) for name in ARGUMENTS if name in FLAGS}
    arguments = {"cache_dir": None, "strict": False, **given}
    settings = corpus_settings(FLAGS.flag_values_dict())
    prepared = prepare(Preparation(settings, **arguments), FLAGS.output_dir)
    print(manifest.describe(prepared))
    print(f"{FLAGS.output_dir} is ready after {time.monotonic() - started:.0f} s. Train on it:")
    ties = TIES[vocabularies.load(FLAGS.output_dir).kind]
    languages = {name: prepared[name] for name in ("source_language", "target_language")}
    recipe = " ".join(recipe_of_records(sys.argv[1:], languages))
    train = f"python -m keras_transformer.train {recipe}".rstrip()
    print(f"  {train} --corpus=records --data_dir={FLAGS.output_dir}{ties}")


def _refuse(FLAGS):
    """Flags of the command line that change nothing."""
    from pipelines.prepare.given_vocabulary import given

    reason = "is for a vocabulary that is learned, and"
    if FLAGS.vocabulary:
        flags.refuse(OF_LEARNING, f"{reason} --vocabulary names one")
    elif given(None, pathlib.Path(FLAGS.output_dir).expanduser()):
        flags.refuse(OF_LEARNING, f"{reason} {FLAGS.output_dir} has one")


def _stop_at_once(*_):
    # Files are whole or not there: nothing has to be cleaned up. Beam, and what runs in it, would
    # take the interruption for an error.
    print(
        "error: interrupted. What was saved stays; the same command resumes from there.",
        file=sys.stderr,
    )
    os._exit(130)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, _stop_at_once)
    flags.run(main, SECTIONS)
