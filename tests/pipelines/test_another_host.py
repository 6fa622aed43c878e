"""Ids become batches in a graph that any host can run: it calls no Python, and its functions hold
no data.
"""

import os
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from token_lists import assert_same_batches, random_sentences

from pipelines.batches.batching import evaluation_batches, training_batches
from pipelines.batches.texts import TokenizedPairs
from pipelines.vocabularies.token_ids import TokenIds

PYTHON = {"PyFunc", "PyFuncStateless", "EagerPyFunc", "GeneratorDataset"}
BATCHES = 12


def side(random):
    # Concatenated, as `tokenize_pairs` does it, they begin where TensorFlow wants memory to.
    return TokenIds.concatenate([random_sentences(random, 2000, 19)])


@pytest.fixture(scope="module")
def datasets():
    random = np.random.default_rng(0)
    examples = TokenizedPairs(side(random), side(random)).examples()
    weights = np.where(np.arange(len(examples)) % 2, 1.0, 0.5)
    batches = training_batches(examples, 100, seed=1, weights=weights)
    return {
        "training": batches.dataset(start=4, replicas=2, first=1),
        "evaluation": evaluation_batches(examples, 100),
    }


def serialized(dataset):
    """The dataset as the bytes of a graph. Where it depends on this process, TensorFlow refuses."""
    variant = tf.data.experimental.to_variant(dataset)
    return tf.raw_ops.DatasetToGraphV2(input_dataset=variant, external_state_policy=2).numpy()


def largest_constant(nodes):
    return max(node.attr["value"].tensor.ByteSize() for node in nodes if node.op == "Const")


@pytest.mark.parametrize("name", ["training", "evaluation"])
def test_batches_call_no_python_and_functions_hold_no_ids_as_constants(datasets, name):
    """Functions capture the ids: a graph holds at most 2 GB, and constants are copied."""
    whole = tf.compat.v1.GraphDef.FromString(serialized(datasets[name]))
    graph = list(whole.node)
    functions = [node for function in whole.library.function for node in function.node_def]
    operations = {node.op for node in graph + functions}
    assert {"ParallelMapDatasetV2", "GatherV2"} <= operations
    assert not operations & PYTHON
    assert largest_constant(functions) < 2000
    assert largest_constant(graph) > 2 * 20_000  # the control: here are the ids


# In a new process, because TensorFlow may keep memory that earlier tests freed, and copy into that.
# The two million pairs have 200 MB of ids, mapped from files. A thread looks for the peak: without
# oneDNN, TensorFlow frees its copy before the first batch.
MEMORY = """
import pathlib, re, sys, threading
import numpy as np
import tensorflow as tf
from pipelines.batches.batching import training_batches
from pipelines.batches.texts import TokenizedPairs
from pipelines.vocabularies.token_ids import TokenIds

def own_megabytes():
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(r"RssAnon:\\s+(\\d+) kB", status)[1]) / 1000

sides = []
for path in sys.argv[1:]:
    with open(path, "wb") as file:
        file.truncate(100_000_000)
    starts = np.arange(0, 50_000_001, 25)
    sides.append(TokenIds(np.memmap(path, np.uint16, "c"), starts))
mapped = training_batches(TokenizedPairs(*sides).examples(), 5000, seed=1).dataset(777)
rewritten = tf.data.Options()
rewritten.experimental_optimization.apply_default_optimizations = True
for dataset in (mapped, mapped.with_options(rewritten)):
    sizes = [own_megabytes()]
    over = threading.Event()
    def look():
        while not over.wait(0.001):
            sizes.append(own_megabytes())
    thread = threading.Thread(target=look)
    thread.start()
    iterator = iter(dataset)
    next(iterator)
    over.set()
    thread.join()
    print(max(*sizes, own_megabytes()) - sizes[0])
"""


def test_a_dataset_holds_no_copy_of_the_ids(tmp_path):
    """The control is the default of tf.data: it rewrites the graph, and copies at least one of the
    two sides, 100 MB, for a while or to the end.
    """
    program = [sys.executable, "-c", MEMORY, str(tmp_path / "source"), str(tmp_path / "target")]
    environment = {name: text for name, text in os.environ.items() if "BFC" not in name}
    root = pathlib.Path(__file__).parents[2]
    output = subprocess.check_output(program, cwd=root, env=environment, text=True)
    ours, rewritten = map(float, output.split())
    assert ours < 50
    assert rewritten > 90


# Run by a process without our package.
PROGRAM = """
import pickle, sys
import tensorflow as tf

graph, spec, count = pickle.load(sys.stdin.buffer)
variant = tf.raw_ops.DatasetFromGraph(graph_def=graph)
dataset = tf.data.experimental.from_variant(variant, spec)
assert not {"pipelines", "keras_transformer"} & set(sys.modules)
batches = [tf.nest.flatten(batch) for batch in dataset.take(count).as_numpy_iterator()]
pickle.dump(batches, sys.stdout.buffer)
"""


@pytest.mark.slow
def test_another_process_without_our_package_makes_the_same_batches(datasets, tmp_path):
    for dataset in datasets.values():
        process = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            input=pickle.dumps((serialized(dataset), dataset.element_spec, BATCHES)),
            capture_output=True,
            cwd=tmp_path,
            check=False,
        )
        assert process.returncode == 0, process.stderr.decode()
        received = pickle.loads(process.stdout)
        assert len(received) == BATCHES
        ours = dataset.take(BATCHES).as_numpy_iterator()
        assert_same_batches(received, [tf.nest.flatten(batch) for batch in ours])
