"""The groups of flags that commands declare, by name. Each is a section of options."""

import dataclasses

from keras_transformer.decoding.options import DecodingOptions
from keras_transformer.flags import (
    evaluating,
    reading,
    runs_and_exports,
    seeing,
    text,
    translating,
)
from keras_transformer.flags.definition import flag_values
from keras_transformer.models.architectures import ModelOptions
from keras_transformer.server.options import ServeOptions
from keras_transformer.training import options
from keras_transformer.visualization.attention_pictures import Lines
from keras_transformer.visualization.charts import LearningRates
from keras_transformer.visualization.head_maps import Heads
from keras_transformer.visualization.patch_maps import Patches
from keras_transformer.visualization.pictures import PictureChoice
from keras_transformer.visualization.theme import ThemeOptions
from pipelines.corpora.options import Strictness
from pipelines.options import Options, option, without


@dataclasses.dataclass(frozen=True)
class Errors(Options):
    """Errors."""

    traceback: bool = option(False, "Show where in the program an error came from.")


SECTIONS = {
    "averaging": options.Averaging,
    "batches": options.Batches,
    "labelling": reading.LabellingOptions,
    "classification": reading.ClassificationOptions,
    "corpus": text.CorpusOptions,
    "decode_tokens": translating.DecodeTokens,
    "errors": Errors,
    "evaluate": evaluating.ScoringOptions,
    "export": runs_and_exports.ExportOptions,
    "files": translating.Files,
    "format": runs_and_exports.Format,
    "import": reading.ImportOptions,
    "input": translating.Lines,
    "json": translating.JsonOutput,
    "masking": reading.MaskingOptions,
    "model": ModelOptions,
    "model_dir": runs_and_exports.RunOptions,
    "model_path": translating.ModelToUse,
    "objective": options.ObjectiveOptions,
    "optimizer": options.OptimizerOptions,
    "output": translating.Output,
    "parse": translating.ParseOptions,
    "pictures": seeing.PictureOptions,
    "precision": translating.Precision,
    "predict": translating.PredictOptions,
    "prepare": text.PreparationOptions,
    "reading": reading.VocabularySource,
    "sampling": options.Augmentation,
    "search": DecodingOptions,
    "tuned_search": without(DecodingOptions, "beam_size", "length_penalty"),
    "seed": options.Seed,
    "serve": ServeOptions,
    "start": options.EmbeddingStart,
    "strict": Strictness,
    "task": runs_and_exports.TaskChoice,
    "theme": ThemeOptions,
    "tokenize": evaluating.Tokenizer,
    "training": options.Course,
    "translate": translating.TranslateOptions,
    "tune": evaluating.TuningOptions,
    "version": runs_and_exports.Version,
    # The options of several pictures; the others have none, or some of these.
    "picture": PictureChoice,
    "picture_of_attention": Lines,
    "picture_of_heads": Heads,
    "picture_of_learning_rates": LearningRates,
    "picture_of_patches": Patches,
    "vocabulary": text.VocabularyOptions,
}
# The flags of each.
GROUPS = {name: flag_values(section) for name, section in SECTIONS.items()}
