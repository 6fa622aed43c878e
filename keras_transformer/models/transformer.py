"""The Transformer (Vaswani et al. 2017, figure 1) as a functional Keras model, and the base class
of every architecture of the translation task.
"""

from typing import Any

import keras

from keras_transformer.layers import (
    Decoder,
    Encoder,
    PositionalEmbedding,
    PositionEncoding,
    ProposalHeads,
    padding_mask,
)
from keras_transformer.layers.tensors import Tensor
from keras_transformer.models.hyperparameters import Sizes
from keras_transformer.models.sized_model import (
    BlockStepper,
    SizedModel,
    Stepper,
    embeddings,
    encoding,
    heads,
    projection,
    stack_arguments,
)
from keras_transformer.models.variants import TIES
from pipelines.special_ids import EOS


class EncoderDecoder(SizedModel):
    """An encoder and a decoder with their embedding tables, as one functional Keras model.

    It maps `(source, target)` ids to logits, and trains with `model.fit`. `encode` and `stepper`
    decode with the same weights. A subclass defines `stacks`.

    Call arguments:
        source: ids, (B, S), padded with PAD.
        target: ids shifted right by a start token, (B, T), padded with PAD.

    Returns:
        Logits in float32, (B, T, V).
    """

    # Whether it has `attention_weights`: an `Ensemble`, which decodes like this, has none.
    gives_attention = True

    def stacks(
        self, hyperparameters: Sizes, policy: keras.DTypePolicy
    ) -> tuple[dict[str, PositionalEmbedding], keras.layers.Layer, keras.layers.Layer]:
        """Make the parts of the model.

        Returns:
            `tied_tables`; the encoder, (B, S, d_model) and `attention_mask` -> the memory, (B, S,
            any width); and the decoder, (B, T, d_model), the memory and `memory_mask` -> (B, T,
            d_model), with `with_attention`, `memory_cache` and `stepper`, as `layers.Decoder` has
            them.
        """
        raise NotImplementedError

    def assembled(self, hyperparameters, policy):
        tables, encoder, decoder = self.stacks(hyperparameters, policy)
        source = keras.Input((None,), dtype="int32", name="source")
        target = keras.Input((None,), dtype="int32", name="target")
        mask = source_mask(source, hyperparameters)
        memory = encoder(tables["source_embedding"](source), attention_mask=mask)
        e = tables["embedding"](target)
        x = decoder(e, memory, memory_mask=mask)
        parts = {**tables, "encoder": encoder, "decoder": decoder}
        if hyperparameters.block_size > 1:
            hp = hyperparameters
            sizes = (hp.block_size, hp.num_heads, hp.d_ff, hp.d_k, hp.d_v, hp.dropout)
            parts["proposal_heads"] = ProposalHeads(*sizes, dtype=policy, name="proposal_heads")
            x = parts["proposal_heads"](x, e, memory, memory_mask=mask)
        return (source, target), tables["projection"](x, reverse=True), parts

    def encode(self, source: Tensor) -> dict[str, Any]:
        """Run the encoder once and keep what decoding needs of it.

        Args:
            source: ids, (B, S).

        Returns:
            The source for a stepper, a dictionary of tensors of B rows: "memory", the result of the
            decoder's `memory_cache`, and "mask", booleans (B, 1, S), True at tokens.
        """
        return self.cache(source, self._memory(source))

    def cache(self, source: Tensor, memory: Tensor) -> dict[str, Any]:
        """Make what `encode` returns from source ids (B, S) and their memory."""
        mask = source_mask(source, self.hyperparameters)
        of_source = {"memory": self.decoder.memory_cache(memory), "mask": mask}
        if hasattr(self, "proposal_heads"):
            of_source["proposals"] = self.proposal_heads.memory_cache(memory)
        return of_source

    def stepper(self, table: Tensor | None = None) -> Stepper:
        """Make a `Stepper` for decoding, with the current weights."""
        kind = BlockStepper if hasattr(self, "proposal_heads") else Stepper
        return kind(self, table)

    def encode_with_attention(self, source: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the memory, (B, S, width), and weights as in `attention_weights`."""
        return self._memory(source), {}

    def decode_with_attention(
        self, source: Tensor, target: Tensor, memory: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the result of `call`, from the memory, and the decoder's attention weights."""
        mask = source_mask(source, self.hyperparameters)
        x, weights = self.decoder.with_attention(self.embedding(target), memory, mask)
        return self._logits(x), {"cross": weights}

    def attention_weights(self, source: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Return every layer's attention weights, for pictures and alignments.

        Args:
            source, target: as in `call`.

        Returns:
            A dictionary: "cross" (B, N, h, T, S), attention to the source, where N counts the
            layers that attend to it; and if the model has self-attention, "encoder" (B, N, h, S, S)
            and "decoder" (B, N, h, T, T). Rows sum to 1.
        """
        memory, of_source = self.encode_with_attention(source)
        _, of_target = self.decode_with_attention(source, target, memory)
        return {**of_source, **of_target}

    def _memory(self, source):
        mask = source_mask(source, self.hyperparameters)
        return self.encoder(self.source_embedding(source), attention_mask=mask)

    def _logits(self, x):
        return keras.ops.cast(self.projection(x, reverse=True), "float32")


def source_mask(source: Tensor, sizes: Sizes) -> Tensor:
    """Make the mask (B, 1, S) of sources (B, S): True at tokens, at EOS only with `source_end`."""
    mask = padding_mask(source)
    return mask if sizes.source_end else mask & keras.ops.not_equal(source, EOS)[:, None, :]


def tied_tables(
    hyperparameters: Sizes,
    encoding: PositionEncoding,
    policy: keras.DTypePolicy,
    sides: tuple[str, ...] = ("embedding", "source_embedding"),
) -> dict[str, PositionalEmbedding]:
    """Make the embeddings of the sides, target and source, with an encoding of positions, and the
    projection onto the vocabulary (section 3.4). Those that are tied are the same layer.
    """
    hp = hyperparameters
    roles = (*sides, "projection")
    names = [name for name in TIES[hp.tie_embeddings] if name in roles]
    tables = {}
    for name in names:
        if name == "projection":
            tables[name] = projection(hp, policy, output_bias=hp.output_bias)
        else:
            projects = name == "embedding" and "projection" not in names
            more = {"dropout": hp.dropout, "output_bias": hp.output_bias and projects}
            tables[name] = embeddings(hp, policy, encoding, name, **more)
    return {name: tables.get(name, tables["embedding"]) for name in roles}


@keras.saving.register_keras_serializable("keras_transformer")
class Transformer(EncoderDecoder):
    """A stack of encoder layers and one of decoder layers. Source, target and logits share one
    embedding unless `tie_embeddings` separates them.

    Args:
        hyperparameters: `Hyperparameters`, sizes and variants; or pass its fields as keywords.
        dtype: a Keras dtype policy; the global one by default.

    Call arguments, result and the other methods as in `EncoderDecoder`.

    Example:
        model = Transformer(Hyperparameters(vocabulary_size=8000))
        logits = model((source, target))
    """

    kind = "A Transformer (Vaswani et al. 2017, arXiv 1706.03762)"

    def stacks(self, hyperparameters, policy):
        hp = hyperparameters
        stack = {**stack_arguments(hp), "dtype": policy}
        decoder_layers = hp.num_decoder_layers or hp.num_layers
        of_encoder, of_decoder, of_memory = heads(hp)
        return (
            tied_tables(hp, encoding(hp), policy),
            Encoder(**stack, heads=of_encoder, name="encoder"),
            Decoder(
                **{**stack, "num_layers": decoder_layers},
                heads=of_decoder,
                cross_heads=of_memory,
                name="decoder",
            ),
        )

    def encode_with_attention(self, source):
        x = self.source_embedding(source)
        mask = source_mask(source, self.hyperparameters)
        memory, within_source = self.encoder.with_attention(x, mask)
        return memory, {"encoder": within_source}

    def decode_with_attention(self, source, target, memory):
        mask = source_mask(source, self.hyperparameters)
        x, (to_target, to_memory) = self.decoder.with_attention(
            self.embedding(target), memory, mask
        )
        return self._logits(x), {"decoder": to_target, "cross": to_memory}
