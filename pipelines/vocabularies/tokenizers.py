"""What surrounds SentencePiece's TensorFlow operation: replacements, and the bytes of byte-level
pairs (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section 2.2).

For byte pairs a text is cut into words, each with the space before it, and its bytes are written as
letters, so that SentencePiece never meets spaces or half characters. It merges a word's letters.
"""

import numpy as np

from pipelines.special_ids import EOS
from pipelines.vocabularies.model_proto import is_byte_level, rules_of

# Bytes whose letter has the same code; the others are written as U+0100 and up, in order.
PRINTABLE = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
OTHERS = [byte for byte in range(256) if byte not in PRINTABLE]
LETTERS = [chr(byte if byte in PRINTABLE else 0x100 + OTHERS.index(byte)) for byte in range(256)]
# The white space of Unicode; RE2's \s is ASCII only.
SPACES = r"\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}"
BETWEEN = f"[{SPACES}]+"
# The words of a text that has no white space but a space at its beginning.
WORD = rf"'s|'t|'re|'ve|'m|'ll|'d| ?\pL+| ?\pN+| ?[^{SPACES}\pL\pN]+|[{SPACES}]"
# The operation that splits text stops at byte 0, so two other bytes stand for it.
ESCAPES = (("\x01", "\x01\x03"), (r"\x00", "\x01\x02"))


def words_of(text):
    """Cut strings (B,) into ragged words (B, None), in letters. Joined, the words give the text: of
    several spaces the last belongs to the word after them, and the others are a word of their own.
    """
    import tensorflow as tf
    import tensorflow_text

    text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8")
    for pattern, rewrite in ESCAPES:
        text = tf.strings.regex_replace(text, pattern, rewrite)
    parts = tensorflow_text.regex_split(text, BETWEEN, BETWEEN)
    flat = parts.flat_values
    rows = parts.value_rowids()
    is_space = tf.strings.regex_full_match(flat, BETWEEN)
    same = rows[1:] == rows[:-1]
    before_word = is_space & tf.concat([same, [False]], axis=0)[: tf.size(flat)]
    length = tf.strings.length(flat, unit="UTF8_CHAR")
    count = tf.where(before_word, length - 1, length)
    last = tf.strings.substr(flat, count, length - count, unit="UTF8_CHAR")
    flat = tf.strings.substr(flat, tf.zeros_like(count), count, unit="UTF8_CHAR")
    # The last of several spaces moves to the word after them.
    moved = tf.concat([[""], last[:-1]], axis=0)[: tf.size(flat)]
    words = tensorflow_text.regex_split(moved + tf.where(is_space, "", flat), WORD, WORD)
    spaces = tf.RaggedTensor.from_tensor(tf.where(is_space, flat, "")[:, None])
    words = tf.concat([spaces, words], axis=1)
    words = parts.with_flat_values(words).merge_dims(1, 2)
    return _in_letters(tf.ragged.boolean_mask(words, words != ""))


def _in_letters(words):
    import tensorflow as tf

    characters = tf.strings.bytes_split(words.flat_values)
    numbers = tf.reshape(tf.io.decode_raw(characters.flat_values, tf.uint8), [-1])
    letters = characters.with_flat_values(tf.gather(LETTERS, tf.cast(numbers, tf.int32)))
    joined = tf.strings.reduce_join(letters, axis=1)
    for byte, pair in ((0, (1, 2)), (1, (1, 3))):
        joined = tf.strings.regex_replace(joined, "".join(LETTERS[n] for n in pair), LETTERS[byte])
    return words.with_flat_values(joined)


def text_of(letters):
    """Return the text that strings of letters (B,) stand for, (B,)."""
    import tensorflow as tf

    byte_of = np.zeros(max(map(ord, LETTERS)) + 1, object)
    byte_of[:] = b""
    for byte, letter in enumerate(LETTERS):
        byte_of[ord(letter)] = bytes([byte])
    points = tf.strings.unicode_decode(letters, "UTF-8")
    codes = tf.minimum(points.flat_values, len(byte_of) - 1)
    joined = points.with_flat_values(tf.gather(tf.constant(byte_of.tolist()), codes))
    return tf.strings.reduce_join(joined, axis=1)


def tokenizer_class(model: bytes) -> type:
    """Return the kind of `SentencepieceTokenizer` for a model; it closes each text by EOS."""
    import tensorflow as tf
    import tensorflow_text

    rules = rules_of(model)

    class Replacing(tensorflow_text.SentencepieceTokenizer):
        def tokenize(self, input, name=None):
            for pattern, rewrite in rules:
                input = tf.strings.regex_replace(input, pattern, rewrite)
            return super().tokenize(input, name)

    class OfBytes(tensorflow_text.SentencepieceTokenizer):
        def tokenize(self, input, name=None):
            words = words_of(input)
            pieces = super().tokenize(words.flat_values, name)
            ids = words.with_flat_values(pieces).merge_dims(1, 2)
            return tf.concat([ids, tf.fill([ids.nrows(), 1], EOS)], axis=1)

        def detokenize(self, input, name=None):
            pieces = input.with_flat_values(self.id_to_string(input.flat_values))
            return text_of(tf.strings.reduce_join(pieces, axis=1))

    return OfBytes if is_byte_level(model) else Replacing


def operation(model: bytes, name: str):
    """Return a tokenizer of TensorFlow Text that closes each text by EOS, and whose model belongs
    to the process. By default it belongs to the operation that made it: `tf.random.set_seed` and
    `keras.utils.set_random_seed` forget all operations, which breaks every tokenizer
    (github.com/tensorflow/text, issue 570).

    Each model needs a `name` of its own: in a SavedModel, tokenizers of one name are all reloaded
    as the first of them, and in a process they share their memory.
    """
    import tensorflow as tf
    from tensorflow_text.python.ops.sentencepiece_tokenizer import gen_sentencepiece_tokenizer

    class NamedModel(tf.saved_model.experimental.TrackableResource):
        def __init__(self):
            super().__init__()
            _ = self.resource_handle

        def _create_resource(self):
            with tf.name_scope(name):
                return gen_sentencepiece_tokenizer.sentencepiece_op(model=model, shared_name=name)

    tokenizer = tokenizer_class(model)(model=model, add_eos=not is_byte_level(model), name=name)
    tokenizer._model_resource = NamedModel()
    return tokenizer
