"""BLEU of a trained translator without its k least important heads, and without its k most
important ones (Michel, Levy and Neubig 2019, "Are Sixteen Heads Really Better than One?", section
4): `python -m benchmarks.paper.pruned_heads --model=RUN`.

The importance of a head is the mean of |dL / dm| over held-out pairs, where m = 1 multiplies what
the head gives, and L is a sentence's cross-entropy. As in their section 4.1 it is divided by the
norm of the importances of its layer.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import tensorflow as tf
from absl import app, flags

from benchmarks.tables import print_table
from keras_transformer.layers import MultiHeadAttention
from keras_transformer.visualization.head_measures import attentions_of, without_head
from pipelines.special_ids import BOS, EOS

MODEL = flags.DEFINE_string("model", None, "Folder of a run.", required=True)
PAIRS = flags.DEFINE_integer("pairs", 200, "Pairs of the validation split, for importance.", 1)
SENTENCES = flags.DEFINE_integer("sentences", 200, "Sentences of the test split, for BLEU.", 1)
STEP = flags.DEFINE_integer("step", 2, "Heads between one row and the next.", 1)

Head = tuple[str, int, int]  # Stack, index of the layer, index of the head.
PLACES = {
    "encoder": ("encoder", "self_attention"),
    "decoder": ("decoder", "self_attention"),
    "cross": ("decoder", "cross_attention"),
}


def importances(model, pairs: Sequence[tuple[list[int], list[int]]]) -> dict[Head, float]:
    """The mean of |dL / dm| of each head over pairs of ids, source and target, without EOS."""
    attentions = {
        (stack, layer): attention
        for stack, layers in attentions_of(model).items()
        for layer, attention in enumerate(layers)
    }
    kernels = [attention.output_kernel.value for attention in attentions.values()]
    heads = model.hyperparameters.num_heads
    sums = 0.0
    for source, target in pairs:
        with tf.GradientTape() as tape:
            logits = model((np.array([[*source, EOS]]), np.array([[BOS, *target]])))
            labels = np.array([[*target, EOS]])
            loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        # m scales a head's rows of W^O: dL / dm is the sum of these rows times their gradient.
        products = np.array(kernels) * np.array(tape.gradient(loss, kernels))
        sums += np.abs(products.reshape(len(kernels), heads, -1).sum(axis=-1))
    means = sums / len(pairs)
    shares = means / np.linalg.norm(means, axis=-1, keepdims=True)
    return {
        (stack, layer, head): float(shares[row, head])
        for row, (stack, layer) in enumerate(attentions)
        for head in range(heads)
    }


@contextlib.contextmanager
def without(model, heads: Iterable[Head]) -> Iterator[None]:
    """Let a model's heads give zeros while the block runs."""
    with contextlib.ExitStack() as stack:
        for name, layer, head in heads:
            stack.enter_context(without_head(attentions_of(model)[name][layer], head))
        yield


def narrow(attention: MultiHeadAttention, kept: list[int]) -> MultiHeadAttention:
    """An attention that has these heads alone: their columns of W^Q, W^K and W^V, rows of W^O."""
    smaller = MultiHeadAttention(
        num_heads=len(kept),
        d_model=attention.d_model,
        d_k=attention.d_k,
        d_v=attention.d_v,
        heads=attention.heads,
        dtype=attention.dtype_policy,
    )
    smaller.build(*[(None, None, attention.d_model)] * 3)
    for name in ("query_kernel", "key_kernel", "value_kernel"):
        columns = np.split(getattr(attention, name).numpy(), attention.num_heads, axis=1)
        getattr(smaller, name).assign(np.concatenate([columns[head] for head in kept], axis=1))
    rows = np.split(attention.output_kernel.numpy(), attention.num_heads)
    smaller.output_kernel.assign(np.concatenate([rows[head] for head in kept]))
    return smaller


@contextlib.contextmanager
def narrowed(model, gone: Iterable[Head]) -> Iterator[None]:
    """Let a model have attentions that lack these heads while the block runs. One that lacks all
    keeps its first, which should give zeros.
    """
    gone = set(gone)
    changed = []
    for name, (stack, attribute) in PLACES.items():
        for number, layer in enumerate(getattr(model, stack).layers):
            whole = getattr(layer, attribute)
            kept = [one for one in range(whole.num_heads) if (name, number, one) not in gone]
            # Past Keras, which forbids new layers in what is built.
            object.__setattr__(layer, attribute, narrow(whole, kept or [0]))
            changed.append((layer, attribute, whole))
    try:
        yield
    finally:
        for layer, attribute, whole in changed:
            object.__setattr__(layer, attribute, whole)


def main(_):
    from keras_transformer.evaluation import bleu
    from keras_transformer.inference.held_out_text import held_out_text
    from keras_transformer.inference.loading import module_of
    from keras_transformer.inference.translator import Translator
    from keras_transformer.visualization.model_reading import trained_model

    model, vocabulary, description = trained_model(MODEL.value, "heads")
    sides = (vocabulary.source, vocabulary.target)
    text = held_out_text(description, MODEL.value, "valid")
    ids = [
        side.tokenize(lines[: PAIRS.value]).to_list()
        for side, lines in zip(sides, text, strict=True)
    ]
    found = importances(model, list(zip(*ids, strict=True)))
    ranked = sorted(found, key=found.get)
    print(", ".join(f"{stack} {layer + 1}.{head + 1}" for stack, layer, head in ranked))
    lines, references = (
        side[: SENTENCES.value] for side in held_out_text(description, MODEL.value, "test")
    )
    module = module_of(model, vocabulary, description, MODEL.value, {"beam_size": 1})
    translator = Translator(module)
    example = (np.array([[*ids[0][0], EOS]]), np.array([[BOS, *ids[1][0]]]))

    def row(count):
        cells = [count]
        for gone in (ranked[:count], ranked[len(ranked) - count :]):
            with without(model, gone):
                zeroed = model(example)
                cells.append(f"{bleu.score(translator.translate(lines), references)['bleu']:.2f}")
                with narrowed(model, gone):
                    cells.append(f"{np.abs(model(example) - zeroed).max():.1e}")
        return cells

    columns = ("k", "BLEU without the least", "removed", "BLEU without the most", "removed")
    print_table(columns, map(row, range(0, len(ranked), STEP.value)))


if __name__ == "__main__":
    app.run(main)
