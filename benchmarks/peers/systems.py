"""The systems that `benchmarks.peers.decoding` compares, and one model and its lines in the format
of each.
"""

import pathlib

import keras
import numpy as np
import sentencepiece
from absl import flags

from benchmarks.peers import our_training
from benchmarks.peers.batches import SIZES
from benchmarks.peers.turns import CTRANSLATE2, MARIAN, OPENNMT, OURS, PORTABLE, starter
from keras_transformer.decoding.remembered_options import kept_in, options_of_run
from keras_transformer.inference import portable_export
from keras_transformer.inference.loading import load_trained
from keras_transformer.models import Hyperparameters, Transformer
from keras_transformer.runs.folder import RunFolder
from keras_transformer.saved_models import ctranslate2_model
from keras_transformer.saved_models.write import export
from keras_transformer.tasks.translation.module import TranslationModule
from keras_transformer.training import checkpoint
from pipelines.vocabularies.vocabulary import learn

# By name: the module, and what its task says besides the model and the search. "spread" decodes as
# many batches at once as there are cores.
SYSTEMS = {
    "ctranslate2_float32": (CTRANSLATE2, {"precision": "float32", "spread": False}),
    "ctranslate2_float32_spread": (CTRANSLATE2, {"precision": "float32", "spread": True}),
    "ctranslate2_int8": (CTRANSLATE2, {"precision": "int8", "spread": False}),
    "ctranslate2_int8_spread": (CTRANSLATE2, {"precision": "int8", "spread": True}),
    "saved_model_float32": (OURS, {"spread": False}),
    "saved_model_float32_spread": (OURS, {"spread": True}),
    **{
        f"{form}_{precision}{'_spread' * spread}": (
            PORTABLE,
            {"format": form, "precision": precision, "spread": spread},
        )
        for form in ("onnx", "litert")
        for precision in ("float32", "int8")
        for spread in (False, True)
    },
    "student_onnx_int8_spread": (
        PORTABLE,
        {"format": "onnx", "precision": "int8", "spread": True, "student": True},
    ),
    "marian_float32": (MARIAN, {"spread": False}),
    "marian_float32_spread": (MARIAN, {"spread": True}),
    "opennmt_float32": (OPENNMT, {"spread": False}),
    "opennmt_float32_spread": (OPENNMT, {"spread": True}),
}
LENGTH_PENALTY = 0.6
# More pieces than the text has are learned with words of random letters.
OF_TEXT = 16_000

MODEL = flags.DEFINE_string("model", None, "Folder of a run.")
STUDENT = flags.DEFINE_string("student", None, "Folder of the run of the systems student_*.")
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
BATCH_SIZE = flags.DEFINE_integer("batch_size", 32, "Sentences decoded at once.")
ONE_AT_A_TIME = flags.DEFINE_bool("one_at_a_time", False, "Translate line by line.")


def read_model():
    """Read or make the model that the flags name. Returns (model, vocabulary, description)."""
    if MODEL.value:
        run = RunFolder(MODEL.value)
        return *load_trained(run), run.read_description()
    text = our_training.read_text(DATA_DIR.value)
    lines = text.sources + text.targets
    if VOCABULARY_SIZE.value > OF_TEXT:
        letters = np.random.default_rng(1).integers(97, 123, (2 * VOCABULARY_SIZE.value, 8))
        lines = lines + ["".join(map(chr, word)) for word in letters]
    vocabulary = learn(lines, VOCABULARY_SIZE.value)
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

    def starter(self, name, beam_size, forced_length):
        """Write the files that a system needs.

        Args:
            name: a key of `SYSTEMS`.
            beam_size: 1 for greedy search.
            forced_length: see `benchmarks.peers.translating`.

        Returns:
            As `turns.starter`.
        """
        module, options = SYSTEMS[name]
        if options.get("student") and not STUDENT.value:
            return "there is no --student"
        if not forced_length and (SIZE.value or module == OPENNMT):
            return "random weights do not end their sentences: force a length"
        task = {
            "does": "translate",
            **options,
            "model": str(self._written(module, options, beam_size, forced_length)),
            "size": self.model.hyperparameters.as_dict(),
            "lines": str(self._folder / "lines.txt"),
            **self._vocabularies,
            "beam_size": beam_size,
            "batch_size": BATCH_SIZE.value,
            "forced_length": forced_length,
            "one_at_a_time": ONE_AT_A_TIME.value,
        }
        return starter(module, task, self._folder / f"{name}.log")

    def tokens(self, answer):
        """Count the tokens of all translations, EOS included. Our system gives only text, which is
        tokenized here.
        """
        return answer["tokens"] or sum(
            len(ids) + 1 for ids in self._pieces.encode(answer["translations"])
        )

    def _written(self, program, kind, beam_size, forced_length):
        """Write the model in the format of a system, if it is not written yet. Returns its path."""
        if program in (OURS, PORTABLE):
            # The search is part of the graph, or its options are.
            options = {"beam_size": beam_size, "length_penalty": LENGTH_PENALTY}
            if forced_length:
                options |= {"min_length": forced_length, "max_length": forced_length}
            name = "student" if kind.get("student") else "model"
            form = f"{kind.get('format')}_{kind.get('precision')}"
            path = self._folder / f"{name}_{form}_{beam_size}_{forced_length}"
            if not path.exists():
                trained = (self.model, self.vocabulary)
                if kind.get("student"):
                    trained = load_trained(RunFolder(STUDENT.value))
                options = options_of_run(options, kept_in(self.description))
                module = TranslationModule(*trained, options)
                of_run = (self.description, self.lines[:5])
                if program == PORTABLE:
                    how = {"precision": kind["precision"], "form": kind["format"]}
                    portable_export.export(module, path, *of_run, **how)
                else:
                    export(module, path, *of_run)
            return path
        if program == CTRANSLATE2:
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
