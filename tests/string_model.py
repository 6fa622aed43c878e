"""A SavedModel of string operations with the signatures that our translators have."""

import tensorflow as tf

DTYPES = {
    tf.string: "text reference prefix",
    tf.int32: "beam_size max_length num_hypotheses top_k seed",
    tf.float32: "length_penalty temperature top_p",
}
SPECS = {
    name: tf.TensorSpec([None], dtype, name=name)
    for dtype, names in DTYPES.items()
    for name in names.split()
}
TEXT = [SPECS["text"]]


class StringModel(tf.Module):
    """A stand-in for an exported translator: the translation is the text in upper case. The text
    "fail" is refused.

    Args:
        mark: stands behind each translation.
    """

    def __init__(self, mark):
        super().__init__()
        zero, unit, four, fifty = (tf.constant([value]) for value in (0, 1, 4, 50))
        alpha, whole = (tf.constant([value]) for value in (0.6, 1.0))
        nothing = tf.constant([""])

        def upper(text):
            check = tf.debugging.assert_none_equal(text, "fail", message="this text fails")
            with tf.control_dependencies([check]):
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
            text, beam_size=four, length_penalty=alpha, max_length=fifty, num_hypotheses=unit
        ):
            texts = map(tf.strings.as_string, (beam_size, length_penalty))
            size, penalty = (tf.broadcast_to(each, tf.shape(text)) for each in texts)
            best = upper(text) + "|" + tf.strings.as_string(max_length) + "|" + size + "|" + penalty
            shape = [tf.shape(text)[0], tf.reduce_max(num_hypotheses)]
            translations = tf.broadcast_to(best[:, None], shape)
            return {"translations": translations, "scores": tf.zeros(shape)}

        def score(text, reference):
            tokens = tf.strings.length(reference)
            log_probability = -tf.cast(tokens + tf.strings.length(text), tf.float32)
            return {"log_probability": log_probability, "tokens": tokens}

        def sample(text, temperature=whole, top_k=four, top_p=whole, seed=unit):
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
            sides = (text, reference)
            source, target = (tf.strings.split(side + " </s>").to_tensor() for side in sides)
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

        inputs = {
            **dict.fromkeys((serving_default, nbest, raw, width), "text"),
            **dict.fromkeys((score, align), "text reference"),
            translate: "text beam_size length_penalty max_length num_hypotheses",
            sample: "text temperature top_k top_p seed",
            next_pieces: "text prefix temperature top_k top_p",
        }
        self.functions = {
            function.__name__: tf.function(
                function, input_signature=[SPECS[name] for name in names.split()]
            )
            for function, names in inputs.items()
        }

    def write(self, folder):
        tf.saved_model.save(self, str(folder), signatures=self.functions)


class StringParser(tf.Module):
    """A stand-in for an exported parser: a tree of one level."""

    def __init__(self):
        super().__init__()

        @tf.function(input_signature=TEXT)
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

        @tf.function(input_signature=TEXT)
        def fill(text):
            return {"filled": tf.strings.regex_replace(text, "<mask>", "dog")}

        @tf.function(input_signature=TEXT)
        def fill_mask(text):
            shape = [tf.size(text), 1, 2]
            return {
                **fill(text),
                "pieces": tf.broadcast_to(tf.constant(["dog", "cat"]), shape),
                "probabilities": tf.broadcast_to([0.75, 0.25], shape),
            }

        @tf.function(input_signature=TEXT)
        def embed(text):
            angle = tf.cast(tf.strings.length(text), tf.float32) / 20
            return {"vector": tf.stack([tf.cos(angle), tf.sin(angle)], axis=1)}

        self.functions = {"serving_default": fill, "fill_mask": fill_mask, "embed": embed}

    def write(self, folder):
        tf.saved_model.save(self, str(folder), signatures=self.functions)


class Slow(tf.Module):
    """Counts to a number, one step of a loop at a time; or attends many times, without a loop."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, name="n")], autograph=False)
    def count(self, n):
        last = tf.reduce_max(n)
        [count] = tf.while_loop(lambda i: i < last, lambda i: [i + 1], [tf.constant(0)])
        return {"n": tf.fill(tf.shape(n), count)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, name="n")], autograph=False)
    def attend(self, n):
        size = tf.reduce_max(n)
        values = tf.ones([8, size, size])
        for _ in range(200):
            values = tf.nn.softmax(values)
        return {"n": tf.cast(tf.reduce_sum(values, axis=[1, 2]), tf.int32)}

    def write(self, folder):
        signatures = {"serving_default": self.count, "count": self.count, "attend": self.attend}
        tf.saved_model.save(self, str(folder), signatures=signatures)
