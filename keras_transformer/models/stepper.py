"""The Transformer (Vaswani et al. 2017, figure 1), one target token at a time."""

from keras import ops

from keras_transformer.layers import Matrix


class Stepper:
    """Logits of the next token, from one new token for each of K hypotheses a sentence and a cache
    of those before it.

    Make one before a loop over tokens, not in it: its matrices are laid out anew.

    Args:
        model: a built `Transformer`.
    """

    def __init__(self, model):
        self._embedding = model.embedding
        self._decoder = model.decoder.stepper()
        self._table = Matrix([ops.transpose(model.embedding.table)], model.embedding.dtype_policy)

    def step(self, ids, position, past, encoded):
        """One token further.

        Args:
            ids: the newest tokens, (B, K).
            position: how many tokens came before them, a scalar.
            past: from `Transformer.empty_past` or the step before.
            encoded: from `Transformer.encode`.

        Returns:
            Logits in float32, (B, K, V), and the new past.
        """
        x, past = self._decoder(
            self._embedded(ids, position), past, encoded["memory"], encoded["mask"]
        )
        return self._logits(x), past

    def attentive_step(self, ids, position, past, encoded):
        """`step` that also tells how much each hypothesis attends to the source: the mean of the
        last layer's heads, (B, K, S), third.
        """
        x, past, attention = self._decoder.attentive(
            self._embedded(ids, position), past, encoded["memory"], encoded["mask"]
        )
        return self._logits(x), past, attention

    def _embedded(self, ids, position):
        return self._embedding(ids, positions=ops.reshape(position, (1, 1)))

    def _logits(self, x):
        [logits] = self._table(ops.reshape(x, (-1, x.shape[-1])))
        shape = ops.shape(x)
        return ops.reshape(ops.cast(logits, "float32"), (shape[0], shape[1], logits.shape[-1]))
