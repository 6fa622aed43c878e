"""What the benchmarks of decoding share: the systems, one model written for each of them, the lines
to translate, and the order of turns.
"""

import functools
import pathlib
import sys

import keras
import sentencepiece
from absl import flags

from benchmarks import environments, our_training
from benchmarks.sizes import SIZES
from benchmarks.turns import Trainer
from keras_transformer.decoding.options import DecodingOptions
from keras_transformer.inference.loading import load_trained
from keras_transformer.models import Hyperparameters, Transformer
from keras_transformer.runs.folder import RunFolder
from keras_transformer.saved_models import ctranslate2_model
from keras_transformer.saved_models.write import export
from keras_transformer.tasks.translation.module import TranslationModule
from keras_transformer.training import checkpoint
from pipelines.vocabularies.vocabulary import learn

OURS = "benchmarks.translators.saved_model"
ENGINE = "benchmarks.translators.ctranslate2_model"
MARIAN = "benchmarks.translators.marian"
OPENNMT = "benchmarks.translators.opennmt_tf"
ENVIRONMENTS = {MARIAN: environments.MARIAN, OPENNMT: environments.OPENNMT}
# By name: the module, and what its task says besides the model and the search. "spread" decodes as
# many batches at once as there are cores.
SYSTEMS = {
    "ctranslate2_float32": (ENGINE, {"precision": "float32", "spread": False}),
    "ctranslate2_float32_spread": (ENGINE, {"precision": "float32", "spread": True}),
    "ctranslate2_int8_spread": (ENGINE, {"precision": "int8", "spread": True}),
    "saved_model_float32": (OURS, {"spread": False}),
    "saved_model_float32_spread": (OURS, {"spread": True}),
    "marian_float32": (MARIAN, {"spread": False}),
    "marian_float32_spread": (MARIAN, {"spread": True}),
    "opennmt_float32": (OPENNMT, {"spread": False}),
    "opennmt_float32_spread": (OPENNMT, {"spread": True}),
}
LENGTH_PENALTY = 0.6

MODEL = flags.DEFINE_string("model", None, "Folder of a run.")
SIZE = flags.DEFINE_enum(
    "size",
    None,
    list(SIZES),
    "Random weights of this size in place of --model. Lengths must then be forced.",
)
DATA_DIR = flags.DEFINE_string(
    "data_dir",
    None,
    "Folder of Multi30k: text for the vocabulary of --size, and lines if --lines is not given.",
)
LINES = flags.DEFINE_string("lines", None, "File of source lines; blank lines are left out.")
SENTENCES = flags.DEFINE_integer(
    "sentences",
    None,
    "Translate only this many lines, the first ones. Default: all.",
    lower_bound=1,
)
VOCABULARY_SIZE = flags.DEFINE_integer(
    "vocabulary_size", 8000, "Pieces of the vocabulary, with --size."
)


def read_model():
    """Read or make the model that the flags name. Returns (model, vocabulary, description)."""
    if MODEL.value:
        run = RunFolder(MODEL.value)
        return *load_trained(run), run.read_description()
    text = our_training.read_text(DATA_DIR.value)
    vocabulary = learn(text.sources + text.targets, VOCABULARY_SIZE.value)
    keras.utils.set_random_seed(our_training.SEED)
    hyperparameters = Hyperparameters(vocabulary_size=vocabulary.size, **SIZES[SIZE.value])
    return (
        Transformer(hyperparameters, dtype="float32"),
        vocabulary,
        {"hyperparameters": hyperparameters.as_dict()},
    )


def read_lines():
    if LINES.value:
        lines = pathlib.Path(LINES.value).read_text(encoding="utf-8").splitlines()
    else:
        lines = our_training.read_text(DATA_DIR.value, "test").sources
    return [line for line in lines if line.strip()][: SENTENCES.value]


class Systems:
    """One model and its lines, in the format of each system.

    Args:
        folder: an empty folder for files.

    Attributes:
        lines: the source lines.
    """

    def __init__(self, folder):
        if bool(MODEL.value) == bool(SIZE.value):
            raise SystemExit("name either --model=runs/NAME or --size.")
        if not DATA_DIR.value and (SIZE.value or not LINES.value):
            raise SystemExit(
                "--data_dir is needed: for the vocabulary of --size, and for lines where there "
                "is no --lines."
            )
        self.model, self.vocabulary, self.description = read_model()
        self.lines = read_lines()
        self._pieces = sentencepiece.SentencePieceProcessor(
            model_proto=self.vocabulary.target.model
        )
        self._folder = folder.resolve()
        self._vocabularies = {
            "source_vocabulary": str(self._folder / "source.model"),
            "target_vocabulary": str(self._folder / "target.model"),
        }
        self.vocabulary.source.save(self._vocabularies["source_vocabulary"])
        self.vocabulary.target.save(self._vocabularies["target_vocabulary"])
        (self._folder / "lines.txt").write_text("\n".join(self.lines) + "\n", encoding="utf-8")

    def prepare(self, name, beam_size, batch_size, forced_length=None, one_at_a_time=False):
        """Write the files that a system needs.

        Args:
            name: a key of `SYSTEMS`.
            beam_size: 1 for greedy search.
            batch_size: sentences at once.
            forced_length: see `benchmarks.translators.service`.
            one_at_a_time: translate line by line and measure each.

        Returns:
            (a function that starts the system's process and returns its `Trainer` when it is ready,
            None), or (None, the reason why it cannot run).
        """
        module, options = SYSTEMS[name]
        if not forced_length and (SIZE.value or module == OPENNMT):
            return None, "random weights do not end their sentences: force a length"
        python, reason = (
            ENVIRONMENTS[module].find_or_make()
            if module in ENVIRONMENTS
            else (sys.executable, None)
        )
        if reason:
            return None, reason
        task = {
            **options,
            "model": str(self._written(module, beam_size, forced_length)),
            "size": self.model.hyperparameters.as_dict(),
            "lines": str(self._folder / "lines.txt"),
            **self._vocabularies,
            "beam_size": beam_size,
            "batch_size": batch_size,
            "forced_length": forced_length,
            "one_at_a_time": one_at_a_time,
        }
        return functools.partial(Trainer, module, task, self._folder / f"{name}.log", python), None

    def take_turns(self, names, rounds, **decoding):
        """Let systems translate the lines in turns. The first round warms up and does not count.

        Args:
            names: keys of `SYSTEMS`.
            rounds: number of rounds that count.
            **decoding: as in `prepare`.

        Returns:
            Two dictionaries by name: the answers of each system, one a round; and the reasons why
            the others did not run.
        """
        running = {}
        answers = {}
        unavailable = {}
        try:
            for name in names:
                start, unavailable[name] = self.prepare(name, **decoding)
                if start:
                    running[name] = start()
                    unavailable[name] = running[name].unavailable
            for number in range(rounds + 1):
                for name in [name for name in names if not unavailable[name]]:
                    answer = running[name].train(1)
                    unavailable[name] = answer.get("unavailable")
                    if number:
                        answers.setdefault(name, []).append(answer)
        finally:
            for trainer in running.values():
                trainer.close()
        unavailable = {name: reason for name, reason in unavailable.items() if reason}
        return {
            name: given for name, given in answers.items() if name not in unavailable
        }, unavailable

    def tokens(self, answer):
        """Count the tokens of all translations, EOS included. Our system gives only text, which is
        tokenized here.
        """
        return answer["tokens"] or sum(
            len(ids) + 1 for ids in self._pieces.encode(answer["translations"])
        )

    def _written(self, module, beam_size, forced_length):
        """Write the model in the format of a system, if it is not written yet. Returns its path."""
        if module == OURS:
            # The search is part of the graph.
            options = {"beam_size": beam_size, "length_penalty": LENGTH_PENALTY}
            if forced_length:
                options |= {"min_length": forced_length, "max_length": forced_length}
            path = self._folder / f"saved_model_{beam_size}_{forced_length}"
            if not path.exists():
                module = TranslationModule(self.model, self.vocabulary, DecodingOptions(**options))
                export(module, path, self.description)
            return path
        if module == ENGINE:
            path = self._folder / "ctranslate2"
            return (
                path
                if path.exists()
                else ctranslate2_model.convert(self.model, self.vocabulary, path, self.description)
            )
        path = self._folder / "weights.npz"
        if not path.exists():
            checkpoint.write_archive(
                path,
                {checkpoint.WEIGHTS + weight.path: weight.numpy() for weight in self.model.weights},
            )
        return path
