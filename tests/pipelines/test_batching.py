"""Batches: every pair, aligned, in full batches of a few shapes, in an order that the seed decides.
Buckets: every length has its place, budgets hold, little is padded. The graph that makes batches of
ids calls no Python, so that any host can run it.
"""

import collections
import itertools
import os
import pathlib
import pickle
import re
import subprocess
import sys
import types

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from token_lists import assert_same_batches, listed, packed, random_sentences

from pipelines.batches import batching
from pipelines.batches.batching import evaluation_batches, training_batches
from pipelines.batches.bucketing import (
    MOST_PADDING,
    MOST_PADDING_STATIC,
    MOST_SHAPES,
    boundaries,
    bucket,
    merge,
)
from pipelines.batches.texts import TokenizedPairs, tokenize_pairs
from pipelines.corpora.parallel_text import ParallelText
from pipelines.special_ids import BOS, EOS
from pipelines.vocabularies.token_ids import TokenIds

LENGTHS = np.random.default_rng(0).integers(1, 13, (60, 2)).tolist()
BUDGET = 24
UPDATE = 96  # more than six pairs


def numbers_as_words(size):
    """A vocabulary: the id of a word is the number that it spells."""

    def tokenize(text):
        return tf.concat(
            [tf.strings.to_number(tf.strings.split(text), tf.int32), tf.fill([len(text), 1], EOS)],
            axis=1,
        )

    words = types.SimpleNamespace(size=size, tokenize=tokenize)
    return types.SimpleNamespace(source=words, target=words)


WORDS = numbers_as_words(100)


def batches_of(pairs, *args, **kwargs):
    return batching.training_batches(pairs.examples(), *args, **kwargs)


def validation_batches_of(pairs, batch_tokens):
    return batching.evaluation_batches(pairs.examples(), batch_tokens)


def pairs_of(lengths):
    """Pairs of these lengths: both sides of pair i begin with 100 + i; their words differ."""

    def side(number, first_word):
        counts = enumerate(pair[number] for pair in lengths)
        return packed([100 + i, *range(first_word, first_word - 1 + count)] for i, count in counts)

    return TokenizedPairs(side(0, 10), side(1, 50))


@pytest.fixture(scope="module")
def pairs():
    return pairs_of(LENGTHS)


@pytest.fixture(scope="module")
def batches(pairs):
    return batches_of(pairs, BUDGET, seed=1)


@pytest.fixture(scope="module")
def stream(batches):
    """The first batches of seed 1, of 20 epochs and more; not to be changed."""
    return flat_batches(batches.arrays(), 500)


def flat_batches(batches, count=None):
    """The first batches of a dataset or of an iterator of arrays, as flat tuples."""
    iterator = batches.as_numpy_iterator() if isinstance(batches, tf.data.Dataset) else batches
    return [
        (source, target_input, output, weights)
        for (source, target_input), output, weights in itertools.islice(iterator, count)
    ]


def numbers(batches):
    """Which pairs a stream holds, batch by batch."""
    return [(output[:, 0] - 100).tolist() for _, _, output, _ in batches]


def assert_holds_its_pairs(batch, pairs):
    for source, target_input, output, weights in zip(*batch, strict=True):
        number = output[0] - 100
        for row, side in ((source, pairs.sources), (output, pairs.targets)):
            expected = side[number]
            assert row[: len(expected)].tolist() == expected.tolist()
            assert not row[len(expected) :].any()
        assert target_input.tolist() == [BOS, *output[:-1]]
        assert weights.tolist() == [1.0] * len(expected) + [0.0] * (len(output) - len(expected))


@pytest.mark.parametrize("count", [1, 60])
def test_pairs_stay_aligned_padded_with_0_and_shifted_behind_bos(stream, count):
    """Evaluation has every pair once, in order, in as many batches as its cardinality says."""
    some = pairs_of(LENGTHS[:count])
    dataset = validation_batches_of(some, BUDGET)
    evaluated = flat_batches(dataset)
    trained = stream if count == 60 else flat_batches(batches_of(some, BUDGET, 1).arrays(), 2)
    for batch in trained + evaluated:
        assert_holds_its_pairs(batch, some)
        assert [side.dtype for side in batch] == [np.int32] * 3 + [np.float32]
    evaluated_pairs = numbers(evaluated)
    assert sorted(itertools.chain(*evaluated_pairs)) == list(range(count))
    assert len(evaluated_pairs) == int(dataset.cardinality())
    assert all(batch == sorted(batch) for batch in evaluated_pairs)


@pytest.mark.parametrize("start", [0, 9])
def test_the_batches_are_those_of_the_order(batches, stream, start):
    epoch, before = batches.order.locate(start)
    places = zip(*(side.numpy() for side in batches.order.epoch(epoch)), strict=True)
    expected = []
    for number, begin in [*places][before : before + 5]:
        rows = begin + np.arange(batches.buckets.batch_sizes[number])
        expected.append(batches.order.examples(number, rows).numpy().tolist())
    assert numbers(stream[start : start + len(expected)]) == expected


def specs(*shape):
    """The element spec of batches whose arrays all have this shape."""
    ids = tf.TensorSpec(shape, tf.int32)
    return (ids, ids), ids, tf.TensorSpec(shape, tf.float32)


def test_datasets_know_their_shapes_and_whether_they_end(batches, pairs):
    datasets = (batches.dataset(), validation_batches_of(pairs, BUDGET))
    for dataset in datasets:
        assert dataset.element_spec == specs(None, None)
        # Then nothing waits at the end for a thread that tunes.
        assert dataset.options().autotune.enabled is False
    assert datasets[0].cardinality() == tf.data.INFINITE_CARDINALITY


def test_a_dimension_that_all_buckets_share_is_static():
    pairs = pairs_of([(12, 12)] * 20)
    assert batches_of(pairs, BUDGET, seed=1).dataset().element_spec == specs(2, 12)
    assert validation_batches_of(pairs, BUDGET).element_spec == specs(None, 12)


def test_every_training_batch_is_full_and_of_a_known_shape(batches, stream):
    buckets = zip(batches.buckets.batch_sizes, batches.buckets.lengths.tolist(), strict=True)
    shapes = {(*source.shape, target_input.shape[1]) for source, target_input, *_ in stream}
    assert shapes == {(size, *lengths) for size, lengths in buckets}
    assert all(len(batch[0]) >= 1 for batch in stream)


@pytest.mark.parametrize(
    ("lengths", "expected", "figures"),
    [
        ([(12, 12)] * 20, 10, ("10 updates", 24, 24, "1 shape, 0.0%")),
        ([(12, 12)] * 2600, 1300, ("1,300 updates", 24, 24, "1 shape, 0.0%")),
        ([(12, 12)] * 3 + [(4, 4)] * 7, 3, ("3 updates", 24, 24, "2 shapes, 0.0%")),
        ([(1, 3)], 1, ("1 update", 12, 36, "1 shape, 33.3%")),
    ],
)
def test_updates_an_epoch_are_counted_and_described_with_their_tokens(lengths, expected, figures):
    """3/2 + 7/6 updates are rounded to 3; one pair, a twelfth of an update, counts as 1."""
    batches = batches_of(pairs_of(lengths), BUDGET, seed=1)
    assert batches.updates_per_epoch == expected
    text = "{} an epoch, of {} source and {} target tokens each, in {} padding".format(*figures)
    assert batches.describe() == text


def test_the_described_tokens_are_those_of_the_stream(batches, stream):
    counts = re.findall(r"(\d+) (?:source|target)", batches.describe())
    epochs = stream[: 20 * round(batches.order.batches_per_epoch)]
    for count, side in zip(counts, (0, 2), strict=True):
        tokens = sum((batch[side] != 0).sum() for batch in epochs) / len(epochs)
        assert int(count) == pytest.approx(tokens, abs=1.0)


def replicated(batches, hosts, start, steps):
    """The batches that hosts with these numbers of replicas read, in order of steps and then of
    replicas.
    """
    streams = []
    for host, here in enumerate(hosts):
        dataset = batches.dataset(start, replicas=sum(hosts), first=sum(hosts[:host]), here=here)
        streams.append(iter(flat_batches(dataset, steps * here)))
    return [
        next(stream)
        for _ in range(steps)
        for stream, here in zip(streams, hosts, strict=True)
        for _ in range(here)
    ]


@pytest.mark.parametrize(("hosts", "parts", "steps_before"), [((1, 2, 1), 4, 5), ((1, 1), 6, 0)])
def test_replicas_read_together_what_one_replica_would(pairs, hosts, parts, steps_before):
    """The rows of an update, in their order, do not depend on how many share it, nor on how many
    batches each adds up.
    """
    whole = flat_batches(batches_of(pairs, UPDATE, seed=4).arrays(steps_before), 6)
    batches = batches_of(pairs, UPDATE, seed=4, parts=parts)
    read = replicated(batches, hosts, steps_before * parts, steps=6 * parts // sum(hosts))
    shared = [read[start : start + parts] for start in range(0, len(read), parts)]
    together = [map(np.concatenate, zip(*update, strict=True)) for update in shared]
    assert_same_batches(together, whole)
    for update in shared:
        rows = [len(batch[0]) for batch in update]
        assert max(rows) - min(rows) <= 1


@pytest.mark.parametrize("parts", [2, 3])
def test_parts_that_must_be_alike_have_equally_many_rows(pairs, parts):
    batches = flat_batches(batches_of(pairs, UPDATE, 4, parts=parts, alike=True).arrays(), 24)
    for start in range(0, 24, parts):
        assert len({len(batch[0]) for batch in batches[start : start + parts]}) == 1


def test_an_update_has_an_example_for_each_part(pairs):
    batches_of(pairs, BUDGET, seed=4, parts=2)
    with pytest.raises(ValueError, match=r"^an update must have an example for each of its 99 "):
        batches_of(pairs, BUDGET, seed=4, parts=99)


def test_pairs_of_twice_the_weight_come_twice_as_often():
    """2 epochs are 45 pairs; the last of them waits for a full batch."""
    weights = [2.0] * 5 + [1.0] * 10 + [0.5] * 5
    batches = batches_of(pairs_of([(12, 12)] * 20), BUDGET, seed=1, weights=weights)
    counts = collections.Counter(itertools.chain(*numbers(flat_batches(batches.arrays(), 45 // 2))))
    assert batches.updates_per_epoch == round(22.5 / 2)
    assert all(3 <= counts[pair] <= 4 for pair in range(5))
    assert all(1 <= counts[pair] <= 2 for pair in range(5, 15))
    assert all(0 <= counts[pair] <= 1 for pair in range(15, 20))


def test_many_lines_are_tokenized_in_parts_and_in_order(monkeypatch):
    lines = [str(number) for number in range(10, 20)]
    monkeypatch.setattr("pipelines.vocabularies.token_ids.LINES_A_CALL", 3)
    sources = tokenize_pairs(ParallelText(lines, lines[::-1]), WORDS).sources
    assert listed(sources) == [[number, EOS] for number in range(10, 20)]


@pytest.mark.parametrize(("size", "dtype"), [(2**16, np.uint16), (2**16 + 1, np.int32)])
def test_ids_take_two_bytes_where_the_vocabulary_allows(size, dtype):
    greatest = size - 1
    pairs = tokenize_pairs(ParallelText([f"{greatest} 5"], [f"{greatest}"]), numbers_as_words(size))
    expected = ([[greatest, 5, EOS]], [[greatest, EOS]])
    assert (listed(pairs.sources), listed(pairs.targets)) == expected
    assert pairs.sources.flat.dtype == pairs.targets.flat.dtype == dtype


ANY_LENGTH = st.integers(1, 300)
# Examples of one to three sides: sentences, pairs, triples.
PAIRS = st.integers(1, 3).flatmap(
    lambda sides: st.lists(st.tuples(*[ANY_LENGTH] * sides), min_size=1, max_size=60)
)
SLACK = st.integers(0, 3000)
SHARES = st.floats(0, 0.9)
ANY = 10**6


def bucketed(pairs, slack, most_padding):
    """The buckets of examples, the examples' lengths, and the padded lengths of each one's bucket;
    both lengths (sides, examples).
    """
    lengths = np.array(pairs)
    buckets = bucket(lengths, lengths.max() + slack, most_padding, most_shapes=ANY)
    return buckets, lengths.T, buckets.lengths[buckets.bucket_of].T


@given(longest=st.integers(1, 5000))
def test_edges_increase_strictly_up_to_the_longest(longest):
    edges = boundaries(longest)
    assert (np.diff(edges) > 0).all()
    assert edges[0] == min(4, longest)
    assert edges[-1] == longest


def test_the_edges_of_the_docstring():
    assert boundaries(20).tolist() == [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 18, 20]


@given(PAIRS, SLACK, SHARES)
def test_every_side_fits_its_bucket_and_none_is_empty_or_repeated(pairs, slack, most_padding):
    buckets, lengths, padded = bucketed(pairs, slack, most_padding)
    assert (lengths <= padded).all()
    assert set(buckets.bucket_of.tolist()) == set(range(len(buckets.batch_sizes)))
    assert len(set(map(tuple, buckets.lengths.tolist()))) == len(buckets.batch_sizes)
    # Tokens and padding are counted as by hand.
    assert buckets.tokens.tolist() == lengths.sum(axis=1).tolist()
    assert buckets.padding == pytest.approx((padded - lengths).sum() / padded.sum(), abs=1e-12)
    # No other size of a batch comes nearer to the tokens.
    batch_tokens = lengths.max() + slack
    assert (buckets.batch_sizes >= 1).all()
    for number, size in enumerate(buckets.batch_sizes.tolist()):
        mean_length = lengths[:, buckets.bucket_of == number].mean()
        nearest = abs(mean_length * np.array([size - 1, size + 1]) - batch_tokens).min()
        assert abs(size * mean_length - batch_tokens) <= nearest + 1e-9


@given(PAIRS, SLACK, st.integers(1, 9))
def test_batches_are_multiples_where_parts_must_be_alike(pairs, slack, multiple):
    batch_tokens = np.max(pairs) + slack
    sizes = bucket(pairs, batch_tokens, multiple=multiple).batch_sizes
    assert (sizes >= multiple).all()
    assert not (sizes % multiple).any()
    free = bucket(pairs, batch_tokens).batch_sizes
    assert (np.abs(sizes - free)[free >= multiple] <= multiple / 2 + 0.5).all()


@given(PAIRS, SLACK, SHARES)
def test_merging_saves_shapes_while_padding_stays_below_the_share(pairs, slack, most_padding):
    merged, unmerged = (bucketed(pairs, slack, share)[0] for share in (most_padding, 0))
    assert merged.padding <= max(unmerged.padding, most_padding) + 1e-12
    assert len(merged.batch_sizes) <= len(unmerged.batch_sizes)


@given(PAIRS, SLACK)
def test_without_a_share_every_rectangle_of_two_edges_keeps_its_shape(pairs, slack):
    """So every side wastes less than a seventh."""
    buckets, lengths, padded = bucketed(pairs, slack, most_padding=0)
    edges = boundaries(lengths.max()).tolist()
    rectangles = [
        tuple(min(edge for edge in edges if edge >= length) for length in pair) for pair in pairs
    ]
    assert [*zip(*padded.tolist(), strict=True)] == rectangles
    assert len(buckets.batch_sizes) == len(set(rectangles))
    assert ((padded < 1.15 * lengths) | (padded <= 4)).all()


def like_captions():
    """Lengths like those of Multi30k: 29,000 pairs of some 14 tokens, the translation a few longer
    or shorter.
    """
    rng = np.random.default_rng(0)
    sources = rng.lognormal(2.6, 0.3, 29_000).round().clip(3, 45)
    targets = (sources + rng.normal(0, 2, 29_000)).round().clip(3, 45)
    return np.stack([sources, targets], axis=-1).astype(int)


def like_wmt():
    """Lengths like those of WMT 2014 English-German in 37,000 pieces, log-normal: 450,000 pairs."""
    rng = np.random.default_rng(0)
    sources = rng.lognormal(3.2, 0.62, 450_000)
    targets = sources * rng.lognormal(0.02, 0.2, 450_000)
    lengths = np.stack([sources, targets], axis=-1).round().astype(int).clip(1) + 1
    return lengths[(lengths <= 256).all(axis=1)]


def test_lengths_like_those_of_wmt_take_at_most_40_shapes_with_10_per_cent_padding():
    """An update has about 25,000 tokens on each side without padding: section 5.1."""
    lengths = like_wmt()
    buckets = bucket(lengths, 25_000)
    assert len(buckets.batch_sizes) == MOST_SHAPES == 40
    assert buckets.padding < 0.1
    # The control: the bound of padding alone leaves more.
    assert len(bucket(lengths, 25_000, most_shapes=ANY).batch_sizes) > 50
    pairs = np.bincount(buckets.bucket_of)
    for side in lengths.T:
        of_bucket = np.bincount(buckets.bucket_of, side) / pairs * buckets.batch_sizes
        assert (abs(of_bucket - 25_000) < 0.25 * 25_000).all()
        updates = (pairs / buckets.batch_sizes).sum()
        assert side.sum() / updates == pytest.approx(25_000, rel=0.03)


def test_captions_take_at_most_40_shapes_with_10_per_cent_padding():
    """With and without a graph for each shape, in updates of several sizes."""
    captions = like_captions()
    for batch_tokens, share in itertools.product(
        (512, 25_000), (MOST_PADDING, MOST_PADDING_STATIC)
    ):
        buckets = bucket(captions, batch_tokens, share)
        assert len(buckets.batch_sizes) <= 40
        assert buckets.padding < 0.1
    few, many = (bucket(captions, 4096, share, most_shapes=ANY) for share in (MOST_PADDING, 0))
    assert many.padding < few.padding < MOST_PADDING < 0.12
    assert len(few.batch_sizes) < len(many.batch_sizes) / 3


SHAPES = st.lists(st.tuples(*[st.integers(1, 12)] * 2), min_size=1, max_size=7, unique=True)


@st.composite
def rectangles(draw):
    """Distinct shapes, their counts, and a limit of positions, from fewer than they fill to more
    than one shape for all would fill.
    """
    shapes = np.array(draw(SHAPES))
    of_each = st.lists(st.integers(1, 20), min_size=len(shapes), max_size=len(shapes))
    counts = np.array(draw(of_each))
    return shapes, counts, draw(st.integers(0, 24 * int(counts.sum())))


def positions(shapes, counts):
    return int((counts * shapes.sum(axis=1)).sum())


def merged_by_hand(shapes, counts, most_positions):
    """Groups of rectangles, merged by trying all pairs; the first of equally good ones is taken."""

    def filled(groups):
        return sum(counts[group].sum() * shapes[group].max(axis=0).sum() for group in groups)

    groups = [[number] for number in range(len(shapes))]
    while len(groups) > 1:
        tries = [
            [
                group + groups[second] if number == first else group
                for number, group in enumerate(groups)
                if number != second
            ]
            for first, second in itertools.combinations(range(len(groups)), 2)
        ]
        best = min(tries, key=filled)
        if filled(best) > most_positions:
            break
        groups = best
    return groups


@given(rectangles())
def test_merging_takes_the_cheapest_two_of_all_while_the_limit_holds(case):
    shapes, counts, _ = case
    merged_shapes, merged = merge(*case, ANY)
    groups = merged_by_hand(*case)
    assert merged_shapes.tolist() == [shapes[group].max(axis=0).tolist() for group in groups]
    members = [np.flatnonzero(merged == number).tolist() for number in range(len(groups))]
    assert members == [sorted(group) for group in groups]
    assert positions(merged_shapes[merged], counts) <= max(case[2], positions(shapes, counts))


def test_no_example_and_a_budget_below_the_longest_sentence_are_refused():
    with pytest.raises(ValueError, match=r"^There is no example to make batches of\.$"):
        bucket(np.zeros((0, 2), int), batch_tokens=8)
    error = r"^`batch_tokens` must hold the longest example, 9 tokens\. Received: batch_tokens=8\."
    for lengths in ([[9, 3], [2, 4]], [[3, 9], [4, 2]], [[9], [2]]):
        with pytest.raises(ValueError, match=error):
            bucket(lengths, batch_tokens=8)


@given(rectangles(), st.integers(1, 8))
def test_too_many_shapes_are_merged_whatever_they_cost(case, most_shapes):
    """As many merging steps as the limit allows, and more while shapes are too many."""
    shapes, counts, most_positions = case
    few, _ = merge(shapes, counts, most_positions, most_shapes)
    by_limit, _ = merge(shapes, counts, most_positions, ANY)
    forced, _ = merge(shapes, counts, 0, most_shapes)
    assert few.tolist() == min(by_limit.tolist(), forced.tolist(), key=len)


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
