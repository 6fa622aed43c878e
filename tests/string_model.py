"""A SavedModel of string operations with the signatures that our translators have."""

import tensorflow as tf


def _optional(dtype, name):
    return tf.TensorSpec([None], dtype, name=name)


class StringModel(tf.Module):
    """What a translator looks like from outside: upper case is the translation. The text "fail" is
    refused.

    Args:
        mark: stands behind each translation.
    """

    def __init__(self, mark):
        super().__init__()
        text, reference = (
            tf.TensorSpec([None], tf.string, name="text"),
            tf.TensorSpec([None], tf.string, name="reference"),
        )
        integer, number = (
            (lambda name: _optional(tf.int32, name)),
            (lambda name: _optional(tf.float32, name)),
        )

        one, four, fifty = (tf.constant([value]) for value in (1, 4, 50))
        alpha, whole = tf.constant([0.6]), tf.constant([1.0])
        nothing = tf.constant([""])
        zero = tf.constant([0])

        def upper(text):
            with tf.control_dependencies(
                [tf.debugging.assert_none_equal(text, "fail", message="this text fails")]
            ):
                return tf.strings.upper(text) + mark

        def serving_default(text):
            return {"translation": upper(text)}

        def nbest(text):
            count = tf.shape(text)[0]
            return {
                "translations": tf.stack([upper(text), text], axis=1),
                "scores": tf.tile([[-0.2, -float("inf")]], [count, 1]),
            }

        def translate(
            text, beam_size=four, length_penalty=alpha, max_length=fifty, num_hypotheses=one
        ):
            size, penalty = (
                tf.broadcast_to(tf.strings.as_string(each), tf.shape(text))
                for each in (beam_size, length_penalty)
            )
            best = upper(text) + "|" + tf.strings.as_string(max_length) + "|" + size + "|" + penalty
            shape = [tf.shape(text)[0], tf.reduce_max(num_hypotheses)]
            return {
                "translations": tf.broadcast_to(best[:, None], shape),
                "scores": tf.zeros(shape),
            }

        def score(text, reference):
            tokens = tf.strings.length(reference)
            return {
                "log_probability": -tf.cast(tokens + tf.strings.length(text), tf.float32),
                "tokens": tokens,
            }

        def sample(text, temperature=whole, top_k=four, top_p=whole, seed=one):
            return {"translation": upper(text) + tf.strings.as_string(seed)}

        def next_pieces(text, prefix=nothing, temperature=whole, top_k=zero, top_p=whole):
            """A piece that counts those before it, and the end."""
            count = tf.strings.as_string(tf.strings.split(prefix).row_lengths())
            temperature = tf.broadcast_to(temperature, tf.shape(text))
            first = tf.broadcast_to(0.75 / temperature, tf.shape(text))
            first = tf.where(tf.broadcast_to(top_k, tf.shape(text)) == 1, 1.0, first)
            pieces = tf.broadcast_to("\u2581" + count, tf.shape(text))
            shares = tf.broadcast_to([[0.75, 0.25]], [tf.size(text), 2])
            return {
                "pieces": tf.stack([pieces, tf.fill(tf.shape(text), "</s>")], axis=1),
                "probabilities": tf.stack([first, 1 - first], axis=1),
                "model_probabilities": shares * tf.broadcast_to(top_p, tf.shape(text))[:, None],
            }

        def align(text, reference):
            source, target = (
                tf.strings.split(side + " </s>").to_tensor() for side in (text, reference)
            )
            shape = [tf.shape(source)[0], 3, 2, tf.shape(target)[1], tf.shape(source)[1]]
            return {
                "source_pieces": source,
                "target_pieces": target,
                "attention": tf.broadcast_to(tf.eye(shape[3], shape[4])[None, None, None], shape),
            }

        def raw(text):
            return {"text_bytes": text, "length": tf.strings.length(text)}

        def width(text):
            """Wider for longer texts, as padding makes it."""
            return {"characters": tf.strings.bytes_split(text).to_tensor()}

        self.functions = {
            "serving_default": tf.function(serving_default, input_signature=[text]),
            "nbest": tf.function(nbest, input_signature=[text]),
            "translate": tf.function(
                translate,
                input_signature=[
                    text,
                    integer("beam_size"),
                    number("length_penalty"),
                    integer("max_length"),
                    integer("num_hypotheses"),
                ],
            ),
            "score": tf.function(score, input_signature=[text, reference]),
            "sample": tf.function(
                sample,
                input_signature=[
                    text,
                    number("temperature"),
                    integer("top_k"),
                    number("top_p"),
                    integer("seed"),
                ],
            ),
            "next_pieces": tf.function(
                next_pieces,
                input_signature=[
                    text,
                    _optional(tf.string, "prefix"),
                    number("temperature"),
                    integer("top_k"),
                    number("top_p"),
                ],
            ),
            "align": tf.function(align, input_signature=[text, reference]),
            "raw": tf.function(raw, input_signature=[text]),
            "width": tf.function(width, input_signature=[text]),
        }

    def write(self, folder):
        tf.saved_model.save(self, str(folder), signatures=self.functions)


class StringParser(tf.Module):
    """What a parser looks like from outside: a tree of one level."""

    def __init__(self):
        super().__init__()
        text = tf.TensorSpec([None], tf.string, name="text")

        @tf.function(input_signature=[text])
        def parse(text):
            words = tf.strings.regex_replace(text, r"(\S+)", r"(XX \1)")
            return {"tree": "(S (NP " + words + "))"}

        self.parse = parse

    def write(self, folder):
        tf.saved_model.save(self, str(folder), signatures={"serving_default": self.parse})


class StringReader(tf.Module):
    """A dog behind every mask, or a cat; and vectors by the lengths of texts."""

    def __init__(self):
        super().__init__()
        text = tf.TensorSpec([None], tf.string, name="text")
        self.fill = tf.function(
            lambda text: {"filled": tf.strings.regex_replace(text, "<mask>", "dog")},
            input_signature=[text],
        )

        @tf.function(input_signature=[text])
        def fill_mask(text):
            shape = [tf.size(text), 1, 2]
            return {
                **self.fill(text),
                "pieces": tf.broadcast_to(tf.constant(["dog", "cat"]), shape),
                "probabilities": tf.broadcast_to([0.75, 0.25], shape),
            }

        @tf.function(input_signature=[text])
        def embed(text):
            angle = tf.cast(tf.strings.length(text), tf.float32) / 20
            return {"vector": tf.stack([tf.cos(angle), tf.sin(angle)], axis=1)}

        self.fill_mask = fill_mask
        self.embed = embed

    def write(self, folder):
        signatures = {
            "serving_default": self.fill,
            "fill_mask": self.fill_mask,
            "embed": self.embed,
        }
        tf.saved_model.save(self, str(folder), signatures=signatures)
