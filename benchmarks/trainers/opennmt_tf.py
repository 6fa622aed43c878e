"""OpenNMT-tf's Transformer, taking turns: its own model, loss, gradient and optimizer, compiled
into one step.

Runs in an environment of its own (see `benchmarks.environments`), without this project's packages.
Post-norm, without attention and output biases, dropout on sublayer outputs and embedding sums only:
as ours.
"""

import pathlib
import tempfile

import opennmt
import tensorflow as tf

from benchmarks.batches import BOS, Batches
from benchmarks.sizes import DROPOUT, LABEL_SMOOTHING
from benchmarks.turns import Parent


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
    with tempfile.TemporaryDirectory() as folder:
        vocabulary = pathlib.Path(folder) / "vocabulary.txt"
        vocabulary.write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")
        data = {"source_vocabulary": str(vocabulary), "target_vocabulary": str(vocabulary)}
        model.initialize(
            data, params={"label_smoothing": LABEL_SMOOTHING, "average_loss_in_time": True}
        )
    model.create_variables()
    return model


def main():
    parent = Parent()
    task = parent.task
    tf.random.set_seed(1)
    model = make_model(task["size"], map(str, range(task["vocabulary_size"] - 1)))
    optimizer = opennmt.optimizers.make_optimizer(
        "Adam", 1e-4, beta_1=0.9, beta_2=0.98, epsilon=1e-9
    )
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


if __name__ == "__main__":
    main()
