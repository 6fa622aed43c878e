"""Masked language modelling: text of one language, an encoder-only model predicts masked pieces
(Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers for Language
Understanding", section 3.1).
"""

import tensorflow as tf

from keras_transformer.inference.perplexity import in_words
from keras_transformer.tasks.masking.module import MaskedTextModule
from keras_transformer.tasks.masking.score import MaskingScorer, batches_of, examples_of, measure
from keras_transformer.tasks.task import Score, with_perplexity
from keras_transformer.tasks.text_task import KEPT, SHOWN, TextEncoding, in_rows
from keras_transformer.training.loss import label_measures


class Masking(TextEncoding):
    """Guess pieces that are hidden in the sources of any corpus, such as `--corpus=lines`."""

    name = "masking"
    labels = "hidden pieces"
    scorer = MaskingScorer
    module_class = MaskedTextModule

    def description(self):
        description = super().description()
        description["training"]["mask_share"] = self.values["mask_share"]
        return description

    def examples(self, split):
        how = (self.values[name] for name in ("max_train_length", "mask_share", "seed"))
        return examples_of(getattr(self.corpus, split).sources, self.vocabulary, *how)

    def validation(self, model, batches):
        """Cross-entropy, perplexity and accuracy per hidden piece of all texts."""
        return with_perplexity(label_measures(model, batches))

    def score(self, module):
        """Cross-entropy and accuracy of the test set, and some of its lines with a word hidden."""
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
    """A line whose middle word is the mask."""
    words = line.split()
    words[len(words) // 2] = mask
    return " ".join(words)
