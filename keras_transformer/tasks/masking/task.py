"""Masked language modelling: text of one language, an encoder-only model predicts masked pieces
(Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers for Language
Understanding", section 3.1).
"""

import numpy as np
import tensorflow as tf

from keras_transformer.inference.generator import in_words, rounded_perplexity
from keras_transformer.models import sizes_of_description
from keras_transformer.runs.description import hyperparameters_in
from keras_transformer.runs.model_path import ModelPath
from keras_transformer.tasks.masking.module import MaskedTextModule
from keras_transformer.tasks.masking.options import MaskingOptions
from keras_transformer.tasks.score import NO_ANSWERS, OF_ANSWERS, Scorer
from keras_transformer.tasks.task import Score
from keras_transformer.tasks.text_task import KEPT, SHOWN, TextEncoding, in_rows
from keras_transformer.training.options import Seed
from pipelines.batches import batching, hidden_pieces, texts
from pipelines.batches.examples import Examples

BATCH_TOKENS = 4096


class MaskingScorer(Scorer):
    """Scores guesses in texts of a split or of --reference_file; the hidden pieces are fixed."""

    useless = OF_ANSWERS
    because = NO_ANSWERS.format("guesses pieces")

    def __init__(self, description, model, values):
        super().__init__(description, model, values)
        path = ModelPath.of(model)
        if path.version:
            raise ValueError(
                f"{model} is a SavedModel, which guesses where a text has masks. Name the run's "
                "folder to measure it."
            )
        # An imported model does not describe its training.
        sizes = hyperparameters_in(description, path.run.description, sizes_of_description)
        defaults = {"mask_share": MaskingOptions.mask_share, "seed": Seed.seed}
        defaults["max_length"] = sizes.max_positions - 1
        self._training = defaults | description.get("training", {})
        self._lines = self.lines(values)

    def examine(self, loading, at_once):
        module = self.module(loading["precision"])
        settings = [self._training[name] for name in ("max_length", "mask_share", "seed")]
        examples = examples_of([*self._lines.values()], module.vocabulary, *settings)
        return measure(module, batches_of(examples, settings[0]))

    def table(self, numbers):
        return (
            f"{numbers['pieces']:,} hidden pieces\naccuracy {numbers['accuracy']:.1%}, perplexity "
            f"{in_words(numbers['perplexity'])}"
        )


def examples_of(lines, vocabulary, longest, share, seed) -> Examples:
    """Make examples of texts, cut to `longest` pieces, of which a share is hidden."""
    ids = texts.tokenized(lines, vocabulary, longest)
    hide = hidden_pieces.Masking(vocabulary.marks, vocabulary.size, share)
    return hidden_pieces.examples(ids, vocabulary.marks, hide, seed)


def batches_of(examples: Examples, longest: int) -> tf.data.Dataset:
    """Return the examples in batches, each once."""
    return batching.evaluation_batches(examples, max(BATCH_TOKENS, longest))


def measure(module: MaskedTextModule, batches: tf.data.Dataset) -> dict:
    """Measure a module's guesses of the hidden pieces in batches of texts: their number,
    cross-entropy in nats, perplexity (None if too large for a float), and accuracy.
    """
    total = np.zeros(3)
    for inputs, pieces, weights in batches:
        logits = module.logits(*inputs)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(pieces, logits)
        right = tf.cast(tf.argmax(logits, axis=-1, output_type=tf.int32) == pieces, tf.float32)
        total += [tf.reduce_sum(part * weights).numpy() for part in (1.0, losses, right)]
    count, loss, right = total
    return {
        "pieces": int(count),
        "cross_entropy": round(loss / count, 4),
        "perplexity": rounded_perplexity(loss / count),
        "accuracy": round(right / count, 4),
    }


class Masking(TextEncoding):
    """Guess pieces that are hidden in the sources of any corpus, such as `--corpus=lines`."""

    name = "masking"
    labels = "hidden pieces"
    scorer = MaskingScorer
    module_class = MaskedTextModule
    measures_perplexity = True

    def description(self):
        description = super().description()
        description["training"]["mask_share"] = self.values["mask_share"]
        return description

    def examples(self, split):
        settings = (self.values[name] for name in ("max_train_length", "mask_share", "seed"))
        return examples_of(getattr(self.corpus, split).sources, self.vocabulary, *settings)

    def score(self, module):
        """Measure guesses on the test set, and show some of its lines with a word hidden."""
        batches = batches_of(self.examples("test"), self.values["max_train_length"])
        numbers = measure(module, batches)
        name = self.vocabulary.marks.name
        hidden = [_with_a_word_hidden(line, name) for line in self.corpus.test.sources]
        filled = module.fill(tf.constant(hidden[:SHOWN]))["filled"].numpy()
        answers = [text.decode(errors="replace") for text in filled]
        report = [
            f"{numbers['accuracy']:.1%} of {numbers['pieces']:,} hidden pieces are guessed, "
            f"perplexity {in_words(numbers['perplexity'])}",
            *in_rows(("text", "filled"), zip(hidden, answers, strict=False)),
        ]
        return Score(numbers, report, hidden[:KEPT])


def _with_a_word_hidden(line, mask):
    """Replace the middle word of a line by the mask."""
    words = line.split()
    words[len(words) // 2] = mask
    return " ".join(words)
