"""`Translator.load(path).translate(lines)`: the same for a run's folder and for a SavedModel."""

import collections
import concurrent.futures
import os
import pathlib

import tensorflow as tf
import tensorflow_text  # noqa: F401  a SavedModel's tokenizer needs its ops

from keras_transformer.decoding import BeamSearch, GreedySearch
from keras_transformer.serving.model_folder import ModelFolder
from keras_transformer.serving.translation_module import MAX_SOURCE_LENGTH, TranslationModule

BATCH_SENTENCES = 64


class Translator:
    """Translates lists of strings.

    Args:
        module: a `TranslationModule`, live or reloaded.
        description: what the model is: its `model.json`.

    Example:
        translator = Translator.load("runs/home_assistant_en_de")
        translator.translate(["Turn off the lights."])
    """

    def __init__(self, module, description=None):
        self.module = module
        self.description = description

    @classmethod
    def load(cls, path, beam_size=4, length_penalty=0.6):
        """Load what was trained or exported.

        Args:
            path: a run's folder, a SavedModel's, or a folder of numbered versions, of which the newest is taken.
            beam_size: hypotheses kept, 1 for greedy search. A SavedModel has its own search inside: only the defaults go with it.
            length_penalty: alpha, likewise.

        Raises:
            FileNotFoundError: if there is no model.
            ValueError: if it is damaged, or a SavedModel is asked for another search.
        """
        path = pathlib.Path(path)
        saved = _saved_model(path)
        if saved is None:
            folder = ModelFolder(path)
            return cls(TranslationModule(*folder.load(), search(beam_size, length_penalty)), folder.read_description())
        if (beam_size, length_penalty) != (4, 0.6):
            raise ValueError(f"{saved} has its search inside: pass no beam_size or length_penalty, or name the folder of the run.")
        try:
            return cls(tf.saved_model.load(str(saved)), ModelFolder(saved).read_description())
        except (OSError, ValueError, KeyError, tf.errors.OpError) as error:
            raise ValueError(f"{saved} is no SavedModel that can be loaded: {_first_line(error)}") from error

    def translate(self, lines, batch_size=BATCH_SENTENCES, batches_at_once=1):
        """Translate sentences; each gets the translation that it would get alone.

        Args:
            lines: strings.
            batch_size: sentences decoded at once, those of similar length together.
            batches_at_once: how many threads decode a batch each; see `spread_over_cores`.

        Returns:
            As many strings, in the same order; "" for an empty or blank line.

        Raises:
            ValueError: naming the first line that is longer than the model takes, before anything is translated.
        """
        lines = list(lines)
        translations = [""] * len(lines)

        def decode(batch):
            output = self.module.translate(tf.constant([lines[index] for index in batch]))["translation"]
            for index, translation in zip(batch, output.numpy(), strict=True):
                translations[index] = translation.decode("utf-8", errors="replace")

        with concurrent.futures.ThreadPoolExecutor(batches_at_once) as pool:
            # Read to the end, so that what went wrong in one is raised.
            collections.deque(pool.map(decode, self._batches(lines, batch_size)), maxlen=0)
        return translations

    def score(self, lines, references, batch_size=BATCH_SENTENCES):
        """How likely the model finds given translations.

        Args:
            lines: strings.
            references: as many, their translations.
            batch_size: sentences at once, those of similar length together.

        Returns:
            For each pair log P(Y | X) in nats and |Y|, the number of its tokens, EOS included in both.

        Raises:
            ValueError: for unequal numbers of strings, a line or reference that is too long, or a SavedModel that cannot do this.
        """
        lines, references = list(lines), list(references)
        if len(lines) != len(references):
            raise ValueError(f"`references` must be as many as `lines`. Received: {len(references):,} and {len(lines):,}.")
        if not hasattr(self.module, "score"):
            raise ValueError("the SavedModel was exported before 0.3 and cannot score. Export it again, or name the folder of its run.")
        scores = [None] * len(lines)
        self._lengths(references)
        for batch in self._batches(lines, batch_size):
            output = self.module.score(*(tf.constant([side[index] for index in batch]) for side in (lines, references)))
            pairs = zip(output["log_probability"].numpy().tolist(), output["tokens"].numpy().tolist(), strict=True)
            for index, pair in zip(batch, pairs, strict=True):
                scores[index] = pair
        return scores

    def _batches(self, lines, batch_size):
        """Numbers of lines of similar length, the long ones first: the last batches, over which not all threads have work, are short."""
        lengths = self._lengths(lines)
        order = sorted(range(len(lines)), key=lambda index: -lengths[index])
        return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]

    def _lengths(self, lines):
        """How many tokens each line has."""
        lengths = []
        for start in range(0, len(lines), 1024):
            lengths += self.module.source_lengths(tf.constant(lines[start : start + 1024])).numpy().tolist()
        for number, length in enumerate(lengths, 1):
            if length > MAX_SOURCE_LENGTH:
                raise ValueError(
                    f"line {number} has {length:,} tokens, more than the {MAX_SOURCE_LENGTH:,} allowed. Split it into sentences."
                )
        return lengths


def spread_over_cores():
    """Let each operation of TensorFlow work on one core, before it is asked for anything.

    Decoding is made of small operations: two batches at once on a core each are decoded faster than one batch on two cores.

    Returns:
        How many batches to decode at once.
    """
    tf.config.threading.set_intra_op_parallelism_threads(1)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def search(beam_size, length_penalty):
    """Greedy search for a beam of 1, else beam search."""
    return GreedySearch() if beam_size == 1 else BeamSearch(beam_size, length_penalty)


def newest_version(folder):
    """The highest integer among the names of a folder's SavedModels; 0 where there is none."""
    folder = pathlib.Path(folder)
    return max((int(path.name) for path in folder.glob("*") if path.name.isdigit()), default=0) if folder.is_dir() else 0


def _saved_model(path):
    if not path.exists():
        raise FileNotFoundError(f"there is no model at {path}: neither a run's folder nor a SavedModel.")
    if (path / "saved_model.pb").exists():
        return path
    version = newest_version(path)
    return path / str(version) if version else None


def _first_line(error):
    return (str(error).strip() or type(error).__name__).splitlines()[0]
