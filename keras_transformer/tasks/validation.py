"""What is measured after each epoch: cross-entropy, perplexity and accuracy of the validation
pairs, and BLEU of the first of them.
"""

import math

import keras

from keras_transformer.decoding import DecodingOptions
from keras_transformer.evaluation import bleu
from keras_transformer.training.loss import LabelSmoothedCrossEntropy
from keras_transformer.training.metrics import TokenAccuracy, TokenCrossEntropy
from keras_transformer.training.optimizer import averaged_weights
from keras_transformer.translator.translation_module import TranslationModule
from keras_transformer.translator.translator import Translator


def validation(inference, vocabulary, batches, sources, references):
    """A function of a model in training that measures its weights, the averaged ones where it keeps
    them.

    Args:
        inference: a float32 model of the same sizes, which takes over the weights.
        vocabulary: its `Vocabulary`.
        batches: takes nothing, gives the validation pairs as `model.evaluate` takes them.
        sources, references: sentences to translate greedily, and their translations; none: BLEU is
            not measured.

    Returns:
        A function that gives a dictionary of numbers. On another backend than TensorFlow, whose
        graph decoding needs, BLEU is left out.
    """
    inference.compile(
        loss=LabelSmoothedCrossEntropy(0.0),
        metrics=[TokenCrossEntropy(), TokenAccuracy()],
        jit_compile=False,
    )
    translates = bool(references) and keras.backend.backend() == "tensorflow"
    greedy = (
        Translator(TranslationModule(inference, vocabulary, DecodingOptions(beam_size=1)))
        if translates
        else None
    )

    def measure(model):
        inference.set_weights([*averaged_weights(model).values()])
        result = inference.evaluate(batches(), verbose=0, return_dict=True)
        numbers = {
            "cross_entropy": result["cross_entropy"],
            "perplexity": math.exp(result["cross_entropy"]),
            "accuracy": result["accuracy"],
        }
        return (
            {**numbers, "bleu": bleu.score(greedy.translate(sources), references)["bleu"]}
            if translates
            else numbers
        )

    return measure
