"""What comes before and behind SentencePiece's operation of TensorFlow: replacements, and for byte-
level byte pairs (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners",
section 2.2) the bytes.

A text is cut into words, each with the space before it, and its bytes are written as letters, so
that no piece has a space or half a character. SentencePiece merges the letters of a word.
"""

import numpy as np

from pipelines.special_ids import EOS
from pipelines.vocabularies.model_proto import is_byte_level, rules_of

# The bytes that stand for themselves as letters; the others follow U+0100 in their order.
PRINTABLE = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
OTHERS = [byte for byte in range(256) if byte not in PRINTABLE]
LETTERS = [chr(byte if byte in PRINTABLE else 0x100 + OTHERS.index(byte)) for byte in range(256)]
# White space as Unicode has it; RE2's \s is ASCII's.
SPACES = r"\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}"
BETWEEN = f"[{SPACES}]+"
# The words of what has no spaces but one at the beginning.
WORD = rf"'s|'t|'re|'ve|'m|'ll|'d| ?\pL+| ?\pN+| ?[^{SPACES}\pL\pN]+|[{SPACES}]"
# What splits text ends at the byte 0, which stands here as two others.
ESCAPES = (("\x01", "\x01\x03"), (r"\x00", "\x01\x02"))


def words_of(text):
    """Strings (B,) to ragged words (B, None), in letters. A text's words are the text: of several
    spaces the last belongs to the word behind them, the others are one of their own.
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
    kept = tf.where(before_word, length - 1, length)
    last = tf.strings.substr(flat, kept, length - kept, unit="UTF8_CHAR")
    flat = tf.strings.substr(flat, tf.zeros_like(kept), kept, unit="UTF8_CHAR")
    # The last of the spaces goes over to the word.
    came = tf.concat([[""], last[:-1]], axis=0)[: tf.size(flat)]
    found = tensorflow_text.regex_split(came + tf.where(is_space, "", flat), WORD, WORD)
    spaces = tf.RaggedTensor.from_tensor(tf.where(is_space, flat, "")[:, None])
    found = tf.concat([spaces, found], axis=1)
    found = parts.with_flat_values(found).merge_dims(1, 2)
    return _in_letters(tf.ragged.boolean_mask(found, found != ""))


def _in_letters(found):
    import tensorflow as tf

    characters = tf.strings.bytes_split(found.flat_values)
    numbers = tf.reshape(tf.io.decode_raw(characters.flat_values, tf.uint8), [-1])
    letters = characters.with_flat_values(tf.gather(LETTERS, tf.cast(numbers, tf.int32)))
    joined = tf.strings.reduce_join(letters, axis=1)
    for byte, pair in ((0, (1, 2)), (1, (1, 3))):
        joined = tf.strings.regex_replace(joined, "".join(LETTERS[n] for n in pair), LETTERS[byte])
    return found.with_flat_values(joined)


def text_of(letters):
    """Strings of letters (B,) to the text that they stand for, (B,)."""
    import tensorflow as tf

    byte_of = np.zeros(max(map(ord, LETTERS)) + 1, object)
    byte_of[:] = b""
    for byte, letter in enumerate(LETTERS):
        byte_of[ord(letter)] = bytes([byte])
    points = tf.strings.unicode_decode(letters, "UTF-8")
    known = tf.minimum(points.flat_values, len(byte_of) - 1)
    joined = points.with_flat_values(tf.gather(tf.constant(byte_of.tolist()), known))
    return tf.strings.reduce_join(joined, axis=1)


def tokenizer_class(model: bytes) -> type:
    """The kind of `SentencepieceTokenizer` that a model is used by; it closes each text by EOS."""
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
    """A tokenizer of TensorFlow Text that closes each text by EOS, whose model belongs to the
    process. TensorFlow Text's own belongs to the operation that made it: `tf.random.set_seed` and
    `keras.utils.set_random_seed` forget all operations, and every tokenizer was broken from then on
    (github.com/tensorflow/text, issue 570).

    TensorFlow reloads tokenizers of one name in a SavedModel as the first of them, and gives those
    of one name in a process the same memory: the name is of this model alone.
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
