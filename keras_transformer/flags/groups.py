"""The groups of flags that commands declare, by name. Each is an absl `FlagValues`."""

from absl import flags

from keras_transformer.flags import learning, running, serving, text, translating

ERRORS = flags.FlagValues()
flags.DEFINE_bool("traceback", False, "Show where in the program an error came from.", ERRORS)

GROUPS = {
    "averaging": learning.AVERAGING,
    "batch_tokens": learning.BATCH_TOKENS,
    "batches": learning.BATCHES,
    "corpus": text.CORPUS,
    "decoding": translating.DECODING,
    "errors": ERRORS,
    "evaluate": translating.EVALUATE,
    "export": running.EXPORT,
    "files": translating.FILES,
    "format": running.FORMAT,
    "model": learning.MODEL,
    "model_dir": running.MODEL_DIR,
    "model_path": translating.MODEL_PATH,
    "optimizer": learning.OPTIMIZER,
    "output": translating.OUTPUT,
    "precision": translating.PRECISION,
    "prepare": text.PREPARE,
    "search": translating.SEARCH,
    "seed": learning.SEED,
    "serve": serving.SERVE,
    "training": running.TRAINING,
    "translate": translating.TRANSLATE,
    "version": running.VERSION,
    "vocabulary": text.VOCABULARY,
}
