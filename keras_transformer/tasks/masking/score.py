"""How well a masked language model predicts masked pieces of text that it has not seen."""

from keras_transformer.inference.perplexity import in_words
from keras_transformer.models import sizes_of_description
from keras_transformer.runs.description import hyperparameters_in
from keras_transformer.runs.model_path import ModelPath
from keras_transformer.tasks.masking.task import BATCH_TOKENS, Masking, measured
from keras_transformer.tasks.score import Examination
from pipelines import corpora
from pipelines.batches import batching, hidden_pieces, texts
from pipelines.corpora.line_files import read_lines

# BERT's.
MASK_SHARE = 0.15
# Flags of `evaluate` that are for answers with a reference.
OF_ANSWERS = ("metrics", "confidence", "baseline_file", "source_file", "evalb_parameters")


class MaskingExamination(Examination):
    """The texts of a split, or of the file --reference_file, with the same pieces hidden each time
    that they are asked.
    """

    def __init__(self, description, model, values):
        if given := [name for name in OF_ANSWERS if values[name]]:
            raise ValueError(
                f"--{given[0]} is for answers that have a reference, and {model} guesses pieces: "
                "leave it out. Text of your own goes into --reference_file."
            )
        path = ModelPath.of(model)
        if path.version:
            raise ValueError(
                f"{model} is a SavedModel, which guesses where a text has masks. Name the run's "
                "folder to measure it."
            )
        self._folder = path.run
        # An imported model does not say how it was trained.
        sizes = hyperparameters_in(description, self._folder.description, sizes_of_description)
        longest = sizes.max_positions - 1
        unknown = {"mask_share": MASK_SHARE, "max_length": longest, "seed": 1}
        self._training = {**unknown, **description.get("training", {})}
        self._lines = _lines(description, model, values)

    def examine(self, loading, at_once):
        module = Masking.reload(self._folder, {"precision": loading["precision"]})
        vocabulary = module.vocabulary
        share = self._training["mask_share"]
        hide = hidden_pieces.Masking(vocabulary.marks, vocabulary.size, share)
        ids = texts.tokenized(self._lines, vocabulary, self._training["max_length"])
        examples = hidden_pieces.examples(ids, vocabulary.marks, hide, self._training["seed"])
        at_once = max(BATCH_TOKENS, self._training["max_length"])
        return measured(module, batching.evaluation_batches(examples, at_once))

    def table(self, found):
        return (
            f"{found['pieces']:,} hidden pieces\naccuracy {found['accuracy']:.1%}, perplexity "
            f"{in_words(found['perplexity'])}"
        )


def _lines(description, model, values):
    if name := values["reference_file"]:
        lines = [line for line in read_lines(name) if line]
        if not lines:
            raise ValueError(f"{name} holds no text. Fill it, or name another file.")
        return lines
    if "corpus" not in description:
        raise ValueError(
            f"{model} does not say what it was trained on: pass text by --reference_file."
        )
    return getattr(corpora.load(**description["corpus"]), values["split"]).sources
