"""An LSTM encoder-decoder with additive attention: what the Transformer dispenses with (Vaswani et
al. 2017, section 1), as a model of the same task.
"""

import dataclasses
from typing import Any

import keras

from keras_transformer.layers import NoEncoding, RecurrentDecoder, RecurrentEncoder
from keras_transformer.models.encoder_decoder import EncoderDecoder, tied_tables
from keras_transformer.models.hyperparameter_checks import (
    check_choices,
    check_even,
    check_probabilities,
    check_sizes,
)
from keras_transformer.models.variants import TIES

CHOICES = {"architecture": ("recurrent",), "tie_embeddings": TIES}


@dataclasses.dataclass(frozen=True)
class RecurrentHyperparameters:
    """What decides a `RecurrentTranslator`'s weights.

    Args:
        vocabulary_size: V, pieces that source and target share, or of each; the logits' width.
        num_layers: N, LSTM layers of the encoder and of the decoder.
        d_model: width of embeddings, LSTM layers and attention, even: half of an encoder's layer
            reads forward, the other half backward.
        dropout: probability in [0, 1) on embeddings and on the output of each layer.
        label_smoothing: epsilon_ls, probability in [0, 1).
        token_dropout: probability in [0, 1) that a token's whole embedding becomes 0.
        tie_embeddings: what shares one table: "three_way", "decoder" or "none", as in
            `Hyperparameters`.
        architecture: "recurrent".

    Raises:
        ValueError: naming the argument, what was expected, what came, and a remedy.
    """

    vocabulary_size: int
    num_layers: int = 6
    d_model: int = 512
    dropout: float = 0.1
    label_smoothing: float = 0.1
    token_dropout: float = 0.0
    tie_embeddings: str = "three_way"
    architecture: str = "recurrent"

    def __post_init__(self):
        check_sizes(self, ("vocabulary_size", "num_layers", "d_model"))
        check_probabilities(self, ("dropout", "label_smoothing", "token_dropout"))
        check_choices(self, CHOICES)
        check_even(self, "d_model")

    def as_dict(self) -> dict[str, Any]:
        """A plain dictionary, for JSON; `RecurrentHyperparameters(**d)` is the way back."""
        return dataclasses.asdict(self)


@keras.saving.register_keras_serializable("keras_transformer")
class RecurrentTranslator(EncoderDecoder):
    """A bidirectional LSTM reads the source, another LSTM attends to it and writes the target.

    Args:
        hyperparameters: sizes; or pass its fields as keywords.
        dtype: a Keras dtype policy; the global one by default.

    Call arguments, result and the other methods as in `EncoderDecoder`.

    Example:
        model = RecurrentTranslator(vocabulary_size=8000, num_layers=2, d_model=256)
        logits = model((source, target))

    References: Bahdanau et al. 2014, "Neural Machine Translation by Jointly Learning to Align and
        Translate"; Luong et al. 2015, "Effective Approaches to Attention-based Neural Machine
        Translation"; Wu et al. 2016, "Google's Neural Machine Translation System".
    """

    what = "An LSTM encoder-decoder with additive attention (Bahdanau et al. 2014, arXiv 1409.0473)"

    def __init__(
        self,
        hyperparameters: RecurrentHyperparameters | None = None,
        dtype: str | keras.DTypePolicy | None = None,
        name: str = "recurrent_translator",
        **sizes,
    ):
        hp = hyperparameters or RecurrentHyperparameters(**sizes)
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        stack = (hp.num_layers, hp.d_model, hp.dropout)
        super().__init__(
            hp,
            tied_tables(hp, NoEncoding(), policy),
            RecurrentEncoder(*stack, dtype=policy, name="encoder"),
            RecurrentDecoder(*stack, dtype=policy, name="decoder"),
            name,
        )
