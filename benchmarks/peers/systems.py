"""The systems that `benchmarks.peers.decoding` compares, and one model and its lines in the format
of each.
"""

import pathlib

import keras
import numpy as np
import sentencepiece
from absl import flags

from benchmarks.peers import ours
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

GRAPHS = {
    f"{form}_{precision}": (PORTABLE, {"format": form, "precision": precision})
    for form in ("onnx", "litert")
    for precision in ("float32", "int8")
}
# By name: the module, and what its task says besides the model and the search. "spread" decodes as
# many batches at once as there are cores.
SYSTEMS = {
    f"{name}{'_spread' * spread}": (module, {**options, "spread": spread})
    for name, (module, options) in {
        "ctranslate2_float32": (CTRANSLATE2, {"precision": "float32"}),
        "ctranslate2_int8": (CTRANSLATE2, {"precision": "int8"}),
        "saved_model_float32": (OURS, {}),
        **GRAPHS,
        "blocks_onnx_float32": (PORTABLE, {**GRAPHS["onnx_float32"][1], "blocks": True}),
        "student_onnx_int8": (PORTABLE, {**GRAPHS["onnx_int8"][1], "student": True}),
        "marian_float32": (MARIAN, {}),
        "opennmt_float32": (OPENNMT, {}),
    }.items()
    for spread in (False, True)
}
LENGTH_PENALTY = 0.6
# More pieces than the text has are learned with words of random letters.
OF_TEXT = 16_000

MODEL = flags.DEFINE_string("model", None, "Folder of a run.")
STUDENT = flags.DEFINE_string("student", None, "Folder of the run of the systems student_*.")
SIZE = flags.DEFINE_enum(
    "size", None, list(SIZES), "Random weights in place of --model; lengths must be forced."
)
DATA_DIR = flags.DEFINE_string(
    "data_dir", None, "Folder of Multi30k: text for --size, and lines if --lines is not given."
)
LINES = flags.DEFINE_string("lines", None, "File of source lines; blank lines are left out.")
SENTENCES = flags.DEFINE_integer("sentences", None, "Translate the first lines only. Default: all.")
VOCABULARY_SIZE = flags.DEFINE_integer("vocabulary_size", 8000, "Pieces, with --size.")
BATCH_SIZE = flags.DEFINE_integer("batch_size", 32, "Sentences decoded at once.")
ONE_AT_A_TIME = flags.DEFINE_bool("one_at_a_time", False, "Translate line by line.")


def read_model():
    """Read or make the model that the flags name. Returns (model, vocabulary, description)."""
    if MODEL.value:
        run = RunFolder(MODEL.value)
        return *load_trained(run), run.read_description()
    text = ours.multi30k(DATA_DIR.value).train
    lines = text.sources + text.targets
    if VOCABULARY_SIZE.value > OF_TEXT:
        letters = np.random.default_rng(1).integers(97, 123, (2 * VOCABULARY_SIZE.value, 8))
        lines = lines + ["".join(map(chr, word)) for word in letters]
    vocabulary = learn(lines, VOCABULARY_SIZE.value)
    keras.utils.set_random_seed(ours.SEED)
    hyperparameters = Hyperparameters(vocabulary_size=vocabulary.size, **SIZES[SIZE.value])
    model = Transformer(hyperparameters, dtype="float32")
    return model, vocabulary, {"hyperparameters": hyperparameters.as_dict()}


def read_lines():
    if LINES.value:
        lines = pathlib.Path(LINES.value).read_text(encoding="utf-8").splitlines()
    else:
        lines = ours.multi30k(DATA_DIR.value).test.sources
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
            raise SystemExit("--data_dir is needed for --size, and where there is no --lines.")
        self.model, self.vocabulary, self.description = read_model()
        self.lines = read_lines()
        self._folder = folder.resolve()
        self._paths = {"lines": str(self._folder / "lines.txt")}
        (self._folder / "lines.txt").write_text("\n".join(self.lines) + "\n", encoding="utf-8")
        for side in ("source", "target"):
            self._paths[f"{side}_vocabulary"] = str(self._folder / f"{side}.model")
            getattr(self.vocabulary, side).save(self._paths[f"{side}_vocabulary"])

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
        search = {"beam_size": beam_size, "forced_length": forced_length}
        task = {
            "does": "translate",
            **options,
            **search,
            **self._paths,
            "model": str(self._written(module, options, **search)),
            "size": self.model.hyperparameters.as_dict(),
            "batch_size": BATCH_SIZE.value,
            "one_at_a_time": ONE_AT_A_TIME.value,
        }
        return starter(module, task, self._folder / f"{name}.log")

    def tokens(self, answer):
        """Count the tokens of all translations, EOS included. Our system gives only text, which is
        tokenized here.
        """
        pieces = sentencepiece.SentencePieceProcessor(model_proto=self.vocabulary.target.model)
        return answer["tokens"] or sum(
            len(ids) + 1 for ids in pieces.encode(answer["translations"])
        )

    def _written(self, program, kind, beam_size, forced_length):
        """The path of the model in the format of a system, which is written once."""
        of_student = kind.get("student", False)
        names = {OURS: f"saved_{beam_size}_{forced_length}", CTRANSLATE2: "ctranslate2"}
        if program == PORTABLE:
            names[program] = f"{kind['format']}_{kind['precision']}_{of_student}_{names[OURS]}"
        path = self._folder / names.get(program, "weights.npz")
        if path.exists():
            return path
        if program in (OURS, PORTABLE):
            # The search is part of the graph, or its options are.
            options = {"beam_size": beam_size, "length_penalty": LENGTH_PENALTY}
            if forced_length:
                options |= {"min_length": forced_length, "max_length": forced_length}
            trained = (self.model, self.vocabulary)
            if of_student:
                trained = load_trained(RunFolder(STUDENT.value))
            module = TranslationModule(*trained, options_of_run(options, kept_in(self.description)))
            of_run = (self.description, self.lines[:5])
            if program == OURS:
                export(module, path, *of_run)
            else:
                how = {"precision": kind["precision"], "form": kind["format"]}
                portable_export.export(module, path, *of_run, **how)
        elif program == CTRANSLATE2:
            ctranslate2_model.convert(self.model, self.vocabulary, path, self.description)
        else:
            weights = {checkpoint.WEIGHTS + w.path: w.numpy() for w in self.model.weights}
            checkpoint.write_archive(path, weights)
        return path
