"""The groups of flags that commands declare, by name. Each is an absl `FlagValues`, as
`definition.flag_values` makes one of dataclasses of options.
"""

from absl import flags

from keras_transformer.flags import (
    architecture,
    evaluating,
    learning,
    reading,
    runs_and_exports,
    seeing,
    serving,
    text,
    translating,
    visualizing,
)

ERRORS = flags.FlagValues()
flags.DEFINE_bool("traceback", False, "Show where in the program an error came from.", ERRORS)

GROUPS = {
    "averaging": learning.AVERAGING,
    "batches": learning.BATCHES,
    "labelling": reading.LABELLING,
    "classification": reading.CLASSIFICATION,
    "corpus": text.CORPUS,
    "decode_tokens": translating.DECODE_TOKENS,
    "decoding": translating.DECODING,
    "errors": ERRORS,
    "evaluate": evaluating.EVALUATE,
    "export": runs_and_exports.EXPORT,
    "files": translating.FILES,
    "format": runs_and_exports.FORMAT,
    "import": reading.IMPORT,
    "input": translating.INPUT,
    "json": translating.JSON,
    "masking": reading.MASKING,
    "model": architecture.MODEL,
    "model_dir": runs_and_exports.MODEL_DIR,
    "model_path": translating.MODEL_PATH,
    "objective": learning.OBJECTIVE,
    "optimizer": learning.OPTIMIZER,
    "output": translating.OUTPUT,
    "parse": translating.PARSE,
    "pictures": seeing.PICTURES,
    "precision": translating.PRECISION,
    "predict": translating.PREDICT,
    "prepare": text.PREPARE,
    "reading": reading.READING,
    "sampling": learning.SAMPLING,
    "search": translating.SEARCH,
    "seed": learning.SEED,
    "serve": serving.SERVE,
    "start": learning.START,
    "strict": text.STRICT,
    "task": runs_and_exports.TASK,
    "theme": visualizing.THEME,
    "tokenize": evaluating.TOKENIZE,
    "training": runs_and_exports.TRAINING,
    "translate": translating.TRANSLATE,
    "tune": evaluating.TUNE,
    "version": runs_and_exports.VERSION,
    "visualize": visualizing.VISUALIZE,
    "vocabulary": text.VOCABULARY,
}
