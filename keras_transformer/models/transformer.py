"""The Transformer (Vaswani et al. 2017, figure 1) as a functional Keras model."""

import keras

from keras_transformer.layers import Decoder, Encoder, padding_mask
from keras_transformer.layers.tensors import Tensor
from keras_transformer.models.encoder_decoder import EncoderDecoder, tied_tables
from keras_transformer.models.hyperparameters import Hyperparameters
from keras_transformer.models.variants import POSITIONS, heads, stack_arguments


@keras.saving.register_keras_serializable("keras_transformer")
class Transformer(EncoderDecoder):
    """Two stacks between one embedding, which source, target and logits share unless they are
    given others.

    Args:
        hyperparameters: sizes and variants; or pass its fields as keywords.
        dtype: a Keras dtype policy; the global one by default.

    Call arguments, result and the other methods as in `EncoderDecoder`.

    Example:
        model = Transformer(Hyperparameters(vocabulary_size=8000))
        logits = model((source, target))
    """

    what = "A Transformer (Vaswani et al. 2017, arXiv 1706.03762)"

    def __init__(
        self,
        hyperparameters: Hyperparameters | None = None,
        dtype: str | keras.DTypePolicy | None = None,
        name: str = "transformer",
        **sizes,
    ):
        hp = hyperparameters or Hyperparameters(**sizes)
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        stack = {**stack_arguments(hp), "dtype": policy}
        of_encoder, of_decoder, of_memory = heads(hp)
        super().__init__(
            hp,
            tied_tables(
                hp,
                POSITIONS[hp.positions].encoding(hp.max_positions),
                policy,
                hp.scaled_embeddings,
            ),
            Encoder(**stack, heads=of_encoder, name="encoder"),
            Decoder(**stack, heads=of_decoder, cross_heads=of_memory, name="decoder"),
            name,
        )

    def encode_with_attention(self, source: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        x = self.source_embedding(source)
        memory, within_source = self.encoder.with_attention(x, padding_mask(source))
        return memory, {"encoder": within_source}

    def decode_with_attention(
        self, source: Tensor, target: Tensor, memory: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        x, (to_target, to_memory) = self.decoder.with_attention(
            self.embedding(target), memory, padding_mask(source)
        )
        return self._logits(x), {"decoder": to_target, "cross": to_memory}
