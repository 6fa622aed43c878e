"""OpenNMT-tf's Transformer, taking turns: its own model, loss, gradient and optimizer, compiled
into one step; and its own `infer`. The weights of that are random: only forced lengths make it do
the same work as the others.

Runs in an environment of its own (`python_of`), without this project's packages. Post-norm,
without attention and output biases, dropout on sublayer outputs and embedding sums only: as ours.
"""

import pathlib
import tempfile

import opennmt  # before TensorFlow, whose log it sets up
import sentencepiece
import tensorflow as tf

from benchmarks.peers.batches import BOS, DROPOUT, LABEL_SMOOTHING, Batches
from benchmarks.peers.translating import cores, in_batches, serve
from benchmarks.peers.turns import Parent


def make_model(size, tokens):
    """Random weights.

    Args:
        size: an entry of `SIZES`.
        tokens: V - 1 different strings, by id; the last id is that of unknown words, which
            OpenNMT-tf adds.
    """
    model = opennmt.models.Transformer(
        num_layers=size["num_layers"],
        num_units=size["d_model"],
        num_heads=size["num_heads"],
        ffn_inner_dim=size["d_ff"],
        dropout=DROPOUT,
        attention_dropout=0.0,
        ffn_dropout=0.0,
        mha_bias=False,
        share_embeddings=opennmt.models.EmbeddingsSharingLevel.ALL,
        pre_norm=False,
        output_layer_bias=False,
    )
    params = {"label_smoothing": LABEL_SMOOTHING, "average_loss_in_time": True}
    with tempfile.TemporaryDirectory() as folder:
        vocabulary = pathlib.Path(folder) / "vocabulary.txt"
        vocabulary.write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")
        sides = ("source_vocabulary", "target_vocabulary")
        model.initialize(dict.fromkeys(sides, str(vocabulary)), params=params)
    model.create_variables()
    return model


def train(parent):
    task = parent.task
    tf.random.set_seed(1)
    model = make_model(task["size"], map(str, range(task["vocabulary_size"] - 1)))
    adam = {"beta_1": 0.9, "beta_2": 0.98, "epsilon": 1e-9}
    optimizer = opennmt.optimizers.make_optimizer("Adam", 1e-4, **adam)
    batches = Batches(task["batches"])
    ids = tf.TensorSpec((None, None), tf.int32)

    @tf.function(input_signature=[ids, ids])
    def compiled(source, target):
        def lengths(rows):
            return tf.math.count_nonzero(rows, axis=1, dtype=tf.int32)

        shifted = tf.pad(target[:, :-1], [[0, 0], [1, 0]], constant_values=BOS)
        features = {"ids": source, "length": lengths(source)}
        labels = {"ids": shifted, "ids_out": target, "length": lengths(target)}
        loss, gradients = model.compute_gradients(features, labels, optimizer)
        optimizer.apply_gradients(list(zip(gradients, model.trainable_weights, strict=True)))
        return loss

    parent.serve(lambda number: float(compiled(*batches[number])))


def load(task):
    at_once = cores() if task["spread"] else 1
    if task["spread"]:
        tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.random.set_seed(1)
    # Random weights of one vocabulary for both languages.
    pieces = sentencepiece.SentencePieceProcessor(model_file=task["source_vocabulary"])
    model = make_model(task["size"], map(pieces.id_to_piece, range(pieces.vocab_size() - 1)))
    length = task["forced_length"]
    # Its penalty is ours: ((5 + |Y|) / 6)^alpha.
    model.params.update(
        beam_width=task["beam_size"],
        length_penalty=0.6,
        minimum_decoding_length=length,
        maximum_decoding_length=length,
    )

    signature = [tf.TensorSpec((None, None), tf.int32), tf.TensorSpec((None,), tf.int32)]

    @tf.function(input_signature=signature)
    def infer(ids, lengths):
        return model.infer({"ids": ids, "length": lengths})["tokens"][:, 0]

    def decode(sources):
        ids = tf.ragged.constant(sources, dtype=tf.int32)
        return infer(ids.to_tensor(), tf.cast(ids.row_lengths(), tf.int32)).numpy().tolist()

    def translate(lines):
        sources = pieces.encode(lines, add_eos=True)
        best = in_batches(decode, sources, list(map(len, sources)), task["batch_size"], at_once)
        lines = [pieces.decode([word.decode() for word in words]) for words in best]
        return lines, sum(map(len, best))

    return translate


if __name__ == "__main__":
    parent = Parent()
    train(parent) if parent.task["does"] == "train" else serve(parent, load)
