"""OpenNMT-tf's own `infer`, compiled, translating in turns.

Runs in an environment of its own (see `benchmarks.environments`), without this project's packages.
Its weights are random: only forced lengths make it do the same work as the others.
"""

import opennmt  # noqa: F401  before TensorFlow, whose log it sets up
import sentencepiece
import tensorflow as tf

from benchmarks.trainers.opennmt_tf import make_model
from benchmarks.translators.service import cores, in_batches, serve


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

    @tf.function(
        input_signature=[tf.TensorSpec((None, None), tf.int32), tf.TensorSpec((None,), tf.int32)]
    )
    def infer(ids, lengths):
        return model.infer({"ids": ids, "length": lengths})["tokens"][:, 0]

    def decode(sources):
        ids = tf.ragged.constant(sources, dtype=tf.int32)
        return infer(ids.to_tensor(), tf.cast(ids.row_lengths(), tf.int32)).numpy().tolist()

    def translate(lines):
        sources = pieces.encode(lines, add_eos=True)
        best = in_batches(decode, sources, list(map(len, sources)), task["batch_size"], at_once)
        return [pieces.decode([word.decode() for word in words]) for words in best], sum(
            map(len, best)
        )

    return translate


if __name__ == "__main__":
    serve(load)
