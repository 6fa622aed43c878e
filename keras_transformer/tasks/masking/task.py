"""Masked language modelling: text of one language, an encoder-only model predicts masked pieces
(Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers for Language
Understanding", section 3.1).
"""

import numpy as np
import tensorflow as tf

from keras_transformer.inference.perplexity import in_words, rounded_perplexity
from keras_transformer.models import MaskedLanguageModel, sizes_of_description, translation_policy
from keras_transformer.tasks.masking.module import MaskedTextModule
from keras_transformer.tasks.task import Evaluation, label_measures, with_perplexity
from keras_transformer.tasks.text_task import TextReading, trial
from keras_transformer.training.loss import LabelSmoothedCrossEntropy
from pipelines import vocabularies
from pipelines.batches import batching, hidden_pieces, texts

SHOWN = 5
KEPT_EXAMPLES = 12
BATCH_TOKENS = 4096


class Masking(TextReading):
    """Guess pieces that are hidden in the sources of any corpus, such as the lines of
    `--corpus=lines`.
    """

    name = "masking"
    labels = "hidden pieces"

    def description(self):
        description = super().description()
        description["training"]["mask_share"] = self.values["mask_share"]
        return description

    def examples(self):
        return self._examples(self.corpus.train)

    def validation_examples(self):
        return self._examples(self.corpus.valid)

    def _examples(self, split):
        longest = self.values["max_train_length"]
        ids = texts.tokenized(split.sources, self.vocabulary, longest)
        marks = self.vocabulary.marks
        hide = hidden_pieces.Masking(marks, self.vocabulary.size, self.values["mask_share"])
        return hidden_pieces.examples(ids, marks, hide, self.values["seed"])

    def model(self, dtype):
        return MaskedLanguageModel(self.hyperparameters, dtype=dtype)

    def loss(self):
        return LabelSmoothedCrossEntropy(self.hyperparameters.label_smoothing)

    def validation(self, model, batches):
        """Cross-entropy, perplexity and accuracy per hidden piece of all texts."""
        return with_perplexity(label_measures(model, batches))

    def module(self, model):
        return MaskedTextModule(model, self.vocabulary)

    @classmethod
    def reload(cls, folder, values):
        hyperparameters = folder.read_hyperparameters(sizes_of_description)
        model = MaskedLanguageModel(hyperparameters, dtype=translation_policy(values["precision"]))
        folder.load_weights(model)
        return MaskedTextModule(model, vocabularies.load(folder.path).source)

    def evaluate(self, module):
        """Cross-entropy and accuracy of the pieces hidden in the test set, and some of its lines
        with a word hidden.
        """
        examples = self._examples(self.corpus.test)
        at_once = max(BATCH_TOKENS, self.values["max_train_length"])
        scores = measured(module, batching.evaluation_batches(examples, at_once))
        name = self.vocabulary.marks.name
        hidden = [_with_a_word_hidden(line, name) for line in self.corpus.test.sources]
        filled = module.fill(tf.constant(hidden[:SHOWN]))["filled"].numpy()
        report = [
            f"{scores['accuracy']:.1%} of {scores['pieces']:,} hidden pieces are guessed, "
            f"perplexity {in_words(scores['perplexity'])}",
            *(
                f"\n  text    {line}\n  filled  {text.decode(errors='replace')}"
                for line, text in zip(hidden, filled, strict=False)
            ),
        ]
        return Evaluation(scores, report, hidden[:KEPT_EXAMPLES])

    def usage(self, version):
        text = _with_a_word_hidden(self.corpus.test.sources[0], self.vocabulary.marks.name)
        return trial(text, "predict", version)


def measured(module: MaskedTextModule, batches: tf.data.Dataset) -> dict:
    """How well a module guesses.

    Args:
        module: of the model.
        batches: triples `((tokens, segments, places), pieces, weights)`.

    Returns:
        "pieces", how many were hidden; "cross_entropy" in nats, "perplexity" and "accuracy" of
        them. The perplexity is None where it is too large for a float.
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


def _with_a_word_hidden(line, mask):
    """A line whose middle word is the mask."""
    words = line.split()
    words[len(words) // 2] = mask
    return " ".join(words)
