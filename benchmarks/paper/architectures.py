"""The claim itself (Vaswani et al. 2017, sections 1, 2 and 7, table 2): attention alone beside
recurrence and convolution, as `python -m benchmarks.paper.architectures --data_dir=multi30k`.

The Transformer of tiny.flags, as wide as the others and with the paper's positions, an LSTM
encoder-decoder with additive attention (recurrent.flags) and the convolutional one of Gehring et
al. 2017 (convolutional.flags) learn the same task: same text, same pieces, same tokens an update
and altogether, same search, all weights drawn. Printed are weights, perplexity and BLEU of the
development set, minutes on one core, what the training cost, and how many products of a forward
pass wait for one another. A run that is done is not trained again, one that was interrupted is
resumed.
"""

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags

from benchmarks.paper import small_runs
from benchmarks.tables import print_table
from keras_transformer.training.cost import LOOPS, RECURRENT, TERMS, body, graph_of, turns

RUN_DIR = flags.DEFINE_string("run_dir", "runs/architectures", "Where the runs lie.")
# What they are called, and the flag file of each.
RECIPES = {"transformer": "tiny", "recurrent": "recurrent", "convolutional": "convolutional"}
CHOSEN = flags.DEFINE_list("architectures", list(RECIPES), "Which to run.")
LENGTH = flags.DEFINE_integer("length", 20, "n, pieces of either side, for the longest chain.", 1)
# The flag files stop after minutes. Here tokens decide, and what the paper has not is left out.
SAME_FOR_ALL = ("--max_minutes=1e6", "--embedding_initialization=drawn")
OWN = {"transformer": {"d_model": 192, "positions": "sinusoidal"}}


def built(name):
    """Weights and the longest chain of products at one and at twice `--length`."""
    from keras_transformer.flags.recipes import recipe
    from keras_transformer.models import model_of, sizes_of_flags

    values = recipe(f"{RECIPES[name]}.flags")
    model = model_of(sizes_of_flags({**values, **OWN.get(name, {})}))
    chains = [
        sequential_products(model, (np.ones((1, length), np.int32),) * 2)
        for length in (LENGTH.value, 2 * LENGTH.value)
    ]
    weights = model.count_params()
    keras.utils.clear_session()
    return weights, chains


def sequential_products(model: keras.Model, inputs) -> int:
    """How many matrix products and convolutions of a forward pass wait for one another: the longest
    chain of them in its graph, which no number of processors makes shorter.

    Args:
        model: of any task.
        inputs: arrays or specs of its inputs, every dimension known.
    """
    return _longest_chain(graph_of(model, inputs))


def _longest_chain(graph: tf.Graph) -> int:
    """The most products on a way through a graph."""
    longest = {}
    for operation in graph.get_operations():
        own = 0
        if operation.type == RECURRENT:
            own = operation.inputs[0].shape[0 if operation.get_attr("time_major") else 1]
        elif operation.type in TERMS:
            own = 1
        elif operation.type in LOOPS:
            own = turns(operation) * _longest_chain(body(operation))
        before = (longest[tensor.op] for tensor in operation.inputs)
        longest[operation] = own + max(before, default=0)
    return max(longest[output.op] for output in graph.outputs)


def main(_):
    arguments = {
        name: [
            f"--flagfile={RECIPES[name]}.flags",
            *SAME_FOR_ALL,
            *(f"--{flag}={value}" for flag, value in OWN.get(name, {}).items()),
            "--report",
        ]
        for name in CHOSEN.value
    }
    found = small_runs.train_all(RUN_DIR.value, arguments)
    rows = []
    for name in CHOSEN.value:
        weights, chains = built(name)
        operations = [found[name, seed]["operations"] for seed in small_runs.SEEDS.value]
        rows.append(
            (
                name,
                f"{weights / 1e6:.2f}",
                *small_runs.spreads(found, name, {**small_runs.DIGITS, "minutes": 1}),
                f"{np.mean(operations):.2g}",
                *chains,
            )
        )
    header = ("model", "million weights", *small_runs.HEADS)
    chains = [f"chain, n = {length}" for length in (LENGTH.value, 2 * LENGTH.value)]
    print_table((*header, "minutes, one core", "operations", *chains), rows)


if __name__ == "__main__":
    app.run(main)
