"""An encoder-only model without a head (Devlin et al. 2019, "BERT: Pre-training of Deep
Bidirectional Transformers for Language Understanding"): the encoder of figure 1 (Vaswani et al.
2017) over embeddings.
"""

import keras
from keras import ops

from keras_transformer.layers.tensors import Tensor
from keras_transformer.models.hyperparameters import Hyperparameters
from keras_transformer.models.text_encoder import TextEncoder, inputs


@keras.saving.register_keras_serializable("keras_transformer")
class BareTextEncoder(keras.Model):
    """A state for each token of a text, for sentence vectors, or for a head of another's.

    Args:
        hyperparameters: sizes and variants; or pass its fields as keywords.
        dtype: a Keras dtype policy; the global one by default.

    Call arguments:
        tokens: ids, (B, T), padded with PAD.
        segments: 0 for tokens of a first sentence, 1 for those of a second, (B, T).

    Returns:
        States in float32, (B, T, d_model).
    """

    what = "An encoder-only Transformer (Devlin et al. 2019, arXiv 1810.04805)"

    def __init__(
        self,
        hyperparameters: Hyperparameters | None = None,
        dtype: str | keras.DTypePolicy | None = None,
        name: str = "bare_text_encoder",
        **sizes,
    ):
        hp = hyperparameters or Hyperparameters(**sizes)
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        body = TextEncoder(hp, policy)
        tokens, segments = inputs()
        super().__init__((tokens, segments), ops.cast(body(tokens, segments), "float32"), name=name)
        self.hyperparameters = hp
        self.body = body
        self.embedding = body.embedding

    def states(self, tokens: Tensor, segments: Tensor) -> Tensor:
        """What `call` gives, in the dtype that the model computes in."""
        return self.body(tokens, segments)

    def get_config(self):
        return {
            "name": self.name,
            "dtype": keras.dtype_policies.serialize(self.embedding.dtype_policy),
            **self.hyperparameters.as_dict(),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls(**config)
