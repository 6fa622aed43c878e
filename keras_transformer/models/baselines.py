"""Models that the Transformer is compared with (Vaswani et al. 2017, section 1 and table 2), for
the same task: an LSTM encoder-decoder with additive attention, and the convolutional one.
"""

import keras

from keras_transformer.layers import NoEncoding
from keras_transformer.layers.convolutional_decoder import ConvolutionalDecoder
from keras_transformer.layers.convolutions import ConvolutionalEncoder
from keras_transformer.layers.recurrent import RecurrentDecoder, RecurrentEncoder
from keras_transformer.models.architectures import (
    ConvolutionalHyperparameters,
    RecurrentHyperparameters,
)
from keras_transformer.models.sized_model import encoding
from keras_transformer.models.transformer import EncoderDecoder, tied_tables


@keras.saving.register_keras_serializable("keras_transformer")
class RecurrentTranslator(EncoderDecoder):
    """A bidirectional LSTM reads the source, another LSTM attends to it and writes the target.

    Example:
        model = RecurrentTranslator(vocabulary_size=8000, num_layers=2, d_model=256)
        logits = model((source, target))

    References: Bahdanau et al. 2014, "Neural Machine Translation by Jointly Learning to Align and
        Translate"; Luong et al. 2015, "Effective Approaches to Attention-based Neural Machine
        Translation"; Wu et al. 2016, "Google's Neural Machine Translation System".
    """

    sizes = RecurrentHyperparameters
    kind = "An LSTM encoder-decoder with additive attention (Bahdanau et al. 2014, arXiv 1409.0473)"

    def stacks(self, hyperparameters, policy):
        hp = hyperparameters
        stack = (hp.num_layers, hp.d_model, hp.dropout)
        return (
            tied_tables(hp, NoEncoding(), policy),
            RecurrentEncoder(*stack, dtype=policy, name="encoder"),
            RecurrentDecoder(*stack, dtype=policy, name="decoder"),
        )


@keras.saving.register_keras_serializable("keras_transformer")
class ConvolutionalTranslator(EncoderDecoder):
    """Stacks of gated convolutions; each block of the decoder attends to the source.

    Gehring et al. normalize weights (Salimans and Kingma 2016). Here weights are not normalized,
    and are initialized with the variances of their section 3.5. Embeddings and blocks have the same
    width, so of the linear maps between the two only the one before the softmax remains.

    Example:
        model = ConvolutionalTranslator(vocabulary_size=8000, num_layers=5, d_model=192)
        logits = model((source, target))

    Reference: Gehring et al. 2017, "Convolutional Sequence to Sequence Learning".
    """

    sizes = ConvolutionalHyperparameters
    kind = "A convolutional encoder-decoder (Gehring et al. 2017, arXiv 1705.03122)"

    def stacks(self, hyperparameters, policy):
        hp = hyperparameters
        stack = (hp.num_layers, hp.d_model, hp.kernel_size, hp.dropout)
        return (
            tied_tables(hp, encoding(hp), policy),
            ConvolutionalEncoder(*stack, dtype=policy, name="encoder"),
            ConvolutionalDecoder(*stack, dtype=policy, name="decoder"),
        )
