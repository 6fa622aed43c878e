"""A classifier of pictures (Dosovitskiy et al. 2021, "An Image is Worth 16x16 Words: Transformers
for Image Recognition at Scale"), made of the encoder of figure 1 (Vaswani et al. 2017).
"""

import keras

from keras_transformer.layers import Dropout, Encoder, PatchEmbedding, SoftmaxHeads
from keras_transformer.layers.linear_maps import Dense
from keras_transformer.layers.tensors import Tensor
from keras_transformer.models.architectures import VisionHyperparameters
from keras_transformer.models.sized_model import SizedModel, stack_arguments


@keras.saving.register_keras_serializable("keras_transformer")
class VisionTransformer(SizedModel):
    """A class for a picture, from the state of its class token.

        P(class | picture) = softmax(x_0 W + b),    x = Encoder(PatchEmbedding(2 picture - 1))

    Call arguments:
        pictures: (B, H, W, C), from 0 for black to 1 for white.

    Returns:
        Logits in float32, (B, K).

    Example:
        model = VisionTransformer(height=28, width=28, channels=1, classes=10, patch_size=4)
        logits = model(pictures)
    """

    sizes = VisionHyperparameters
    kind = "A Vision Transformer (Dosovitskiy et al. 2021, arXiv 2010.11929)"

    def assembled(self, hyperparameters, policy):
        hp = hyperparameters
        embedding = PatchEmbedding(
            hp.patch_size, hp.d_model, hp.dropout, dtype=policy, name="embedding"
        )
        heads = SoftmaxHeads(dropout=hp.attention_dropout)
        encoder = Encoder(**stack_arguments(hp), heads=heads, dtype=policy, name="encoder")
        head = Dense(hp.classes, dtype=policy, name="classes")
        pictures = keras.Input((hp.height, hp.width, hp.channels), name="picture")
        dropout = Dropout(hp.dropout, dtype=policy, name="head_dropout")
        x = dropout(encoder(embedding(scaled(pictures)))[:, 0])
        return pictures, head(x), {"embedding": embedding, "encoder": encoder}

    def states(self, pictures: Tensor) -> Tensor:
        """Return the last layer's states, (B, 1 + n, d_model), the class token's first."""
        return self.encoder(self.embedding(scaled(pictures)))

    def attention_weights(self, pictures: Tensor) -> dict[str, Tensor]:
        """Return attention weights: {"encoder": (B, N, h, 1 + n, 1 + n)}, whose rows sum to 1."""
        _, weights = self.encoder.with_attention(self.embedding(scaled(pictures)))
        return {"encoder": weights}


def scaled(pictures: Tensor) -> Tensor:
    """Map pixels from [0, 1] to [-1, 1], as the released weights expect them."""
    return 2.0 * pictures - 1.0
