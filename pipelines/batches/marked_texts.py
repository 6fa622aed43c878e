"""Texts between marks, as an encoder-only model reads them (Devlin et al. 2019, "BERT: Pre-training
of Deep Bidirectional Transformers for Language Understanding", section 3). Shapes: B texts; L
tokens of the longest with the mark after it; T = L + 1.
"""

import tensorflow as tf

from pipelines.special_ids import PAD, Marks


def read(ids: tf.RaggedTensor, marks: Marks, longest: int) -> tf.Tensor:
    """What a model reads of texts.

    Args:
        ids: ragged (B, None), each text closed by the mark of the end.
        marks: of the vocabulary.
        longest: most tokens of a text, both marks among them. The end of a longer one is cut.

    Returns:
        int32 (B, T): each text between its marks, padded with PAD.
    """
    return opened(closed(ids, marks, longest - 1).to_tensor(default_value=PAD), marks)


def closed(ids: tf.RaggedTensor, marks: Marks, longest: int) -> tf.RaggedTensor:
    """Texts of at most `longest` tokens, the mark of the end among them, without spaces that a mask
    makes needless: ragged int32 (B, None).
    """
    ids = tf.cast(ids, tf.int32)
    # The last id of a text is its mark, so where it matters the next id is of the same text.
    following = tf.concat([ids.values[1:], [marks.last]], axis=0)
    needless = (ids.values == marks.space) & (following == marks.mask)
    pieces = tf.ragged.boolean_mask(ids, ids.with_values(~needless))
    ends = tf.fill([ids.nrows(), 1], marks.last)
    return tf.concat([pieces[:, :-1][:, : longest - 1], ends], axis=1)


def opened(ids: tf.Tensor, marks: Marks) -> tf.Tensor:
    """Padded texts (B, L) after the mark of the beginning, (B, T)."""
    return tf.pad(ids, [[0, 0], [1, 0]], constant_values=marks.first)
