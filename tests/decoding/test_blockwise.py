"""Blockwise search against greedy search: on tables of logits, whatever is proposed, and on models
with random weights.
"""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.enumeration import BOS, EOS, PAD, Table, TableStepper, padded

from keras_transformer.decoding import BlockwiseSearch, GreedySearch, Sampling
from keras_transformer.decoding.constraints import Constraints, SpanConstraints
from keras_transformer.decoding.forbidden_words import ForbiddenWords
from keras_transformer.decoding.tree_constraints import TreeConstraints
from keras_transformer.models import Transformer

WORDS, SIZE, BATCH = 9, 3, 24
V = 4 + WORDS


class BlockTables(TableStepper):
    """A `TableStepper` of blocks. It proposes `guess(table, prefix)`, where the prefix includes the
    certain token, and counts the blocks of each sentence.
    """

    def __init__(self, tables, guess, size=SIZE):
        super().__init__(tables)
        self.guess = guess
        self.block_size = size
        self.blocks = np.zeros(len(tables), int)

    def block(self, ids, lengths, state, source):
        ids, lengths, source = (np.asarray(tensor) for tensor in (ids, lengths, source))
        newest = np.tile(ids[:, None, :, None], (1, 2, 1, 1))
        keys = np.concatenate([np.asarray(state["keys"]), newest], axis=2)
        values = -np.tile(keys[:, :1], (1, 1, 1, 3))
        self.blocks[source] += 1
        logits = np.zeros((*ids.shape, self.tables[0].size), np.float32)
        prefixes = np.full((*ids.shape, keys.shape[2]), PAD)
        for row, number in enumerate(source):
            tokens = keys[row, 0, keys.shape[2] - self.block_size - lengths[row] :, 0]
            assert tokens[0] == BOS
            for place in range(self.block_size):
                prefix = tokens[1 : lengths[row] + place + 1]
                logits[row, place] = self.tables[number].logits([prefix])[0]
                prefixes[row, place, : len(prefix)] = prefix
                prefixes[row, place, -1] = -1 - number
        return logits, prefixes, {"keys": keys, "values": values}

    def first_proposals(self, source):
        return self._proposed((self.tables[number], ()) for number in np.asarray(source))

    def proposals(self, prefixes, ids, lengths, source):
        contexts = []
        for row, token, length in zip(*map(np.asarray, (prefixes, ids, lengths)), strict=True):
            prefix = (*(int(id_) for id_ in row[:-1] if id_ != PAD), int(token))
            assert length == len(prefix)
            assert token not in (PAD, BOS, EOS)
            contexts.append((self.tables[-1 - row[-1]], prefix))
        tables = [self.tables[number] for number in np.asarray(source)]
        assert tables == [table for table, _ in contexts]
        return self._proposed(contexts)

    def _proposed(self, contexts):
        guesses = [self.guess(table, prefix) for table, prefix in contexts]
        logits = np.zeros((len(guesses), self.block_size - 1, self.tables[0].size), np.float32)
        for row, tokens in enumerate(guesses):
            logits[row, range(len(tokens)), tokens] = 1.0
        return logits


def the_truth(size):
    """Propose the tokens of greedy search."""

    def guess(table, prefix):
        for _ in range(size - 1):
            row = table.log_probabilities([prefix])[0]
            row[[PAD, BOS]] = -np.inf
            prefix += (int(np.argmax(row)),)
        return prefix[1 - size :]

    return guess


def sometimes(size):
    """Propose the truth up to a place that depends on the prefix, and token 4 from there on."""

    def guess(table, prefix):
        right = the_truth(size)(table, prefix)
        wrong = (sum(prefix) + len(prefix)) % size
        return right[:wrong] + (4,) * (size - 1 - wrong)

    return guess


def never(size):
    return lambda table, prefix: (PAD,) * (size - 1)


def decode(search, stepper, limits, **more):
    source = np.arange(len(limits), dtype=np.int32)
    ids, scores = search(stepper, source, np.array(limits, np.int32), **more)
    return np.array(ids)[:, 0], np.array(scores)[:, 0]


SENTENCES = st.lists(st.tuples(st.integers(0, 2**32), st.integers(1, 12)), min_size=1, max_size=5)


@settings(max_examples=12)
@given(SENTENCES, st.sampled_from([the_truth, sometimes, never]), st.sampled_from([2, 3, 5]))
def test_it_gives_what_greedy_search_gives_whatever_is_proposed(sentences, guess, size):
    # No two logits are equal: proposals need not break ties by the lower id.
    tables = [Table(seed, 4) for seed, _ in sentences]
    limits = [limit for _, limit in sentences]
    minima = np.array([min(limit, 2) for limit in limits])
    expected, likelihood = decode(GreedySearch(), TableStepper(tables), limits, minima=minima)
    stepper = BlockTables(tables, guess(size), size)
    ids, scores = decode(BlockwiseSearch(), stepper, limits, minima=minima)
    np.testing.assert_array_equal(ids, expected)
    np.testing.assert_allclose(scores, likelihood, rtol=1e-5, atol=1e-5)


def test_accepted_proposals_save_steps_and_rejected_ones_cost_none():
    tables = [Table(seed, 4) for seed in range(8)]
    limits = [12] * 8
    lengths = {}
    blocks = {}
    for guess in (the_truth, sometimes, never):
        stepper = BlockTables(tables, guess(SIZE))
        ids, _ = decode(BlockwiseSearch(), stepper, limits)
        lengths[guess] = (ids != PAD).sum(axis=1)
        blocks[guess] = stepper.blocks
    np.testing.assert_array_equal(blocks[the_truth], -(-lengths[the_truth] // SIZE))
    np.testing.assert_array_equal(blocks[never], lengths[never])
    assert blocks[the_truth].sum() < blocks[sometimes].sum() < blocks[never].sum()


def test_the_largest_limit_takes_no_memory():
    tables = [Table(seed, 4) for seed in range(8)]
    limits = [2**31 - 1] * 8
    expected, _ = decode(GreedySearch(), TableStepper(tables), limits)
    ids, _ = decode(BlockwiseSearch(), BlockTables(tables, sometimes(SIZE)), limits)
    np.testing.assert_array_equal(ids, expected)


def test_no_sentences_give_no_translations():
    ids, scores = BlockwiseSearch()(
        BlockTables([Table(0, 4)], never(SIZE)), tf.range(0), tf.zeros([0], tf.int32)
    )
    assert ids.shape[:2] == scores.shape == (0, 1)


@pytest.mark.parametrize("logit", [-np.inf, np.nan])
def test_the_search_ends_where_no_token_is_allowed(logit):
    class Empty(Table):
        def logits(self, prefixes):
            return np.full((len(prefixes), self.size), logit, np.float32)

    stepper = BlockTables([Empty(0, 4)], never(SIZE))
    ids, scores = decode(BlockwiseSearch(), stepper, [5])
    expected, likelihood = decode(GreedySearch(), TableStepper([Empty(0, 4)]), [5])
    np.testing.assert_array_equal(ids.any(), expected.any())
    np.testing.assert_array_equal(scores, likelihood)
    assert stepper.blocks.sum() <= 5


def random_model(**variants):
    model = Transformer(
        vocabulary_size=V,
        d_model=8,
        d_ff=12,
        **{"num_layers": 1, "num_heads": 2, "block_size": SIZE, **variants},
    )
    random = np.random.default_rng(2)
    model.set_weights([random.normal(weight, 0.4) for weight in model.get_weights()])
    return model


RANDOM = np.random.default_rng(0)
SOURCE = np.where(
    np.arange(6) < RANDOM.integers(1, 7, (BATCH, 1)), RANDOM.integers(4, V, (BATCH, 6)), PAD
)
LIMITS = RANDOM.integers(1, 8, BATCH).astype("int32")
PREFIXES = padded([tuple(RANDOM.integers(4, V, count % 4)) for count in range(BATCH)])


def translate_with(model, search, rows=slice(None), prefixes=PREFIXES, in_graph=False):
    """Return ids and scores. Tracing takes seconds, so reference searches run without a graph."""

    def run():
        source = model.encode(tf.constant(SOURCE[rows], tf.int32))
        minima = np.minimum(LIMITS[rows], 3)
        return search(model.stepper(), source, LIMITS[rows], minima, prefixes=prefixes[rows])

    ids, scores = tf.function(run, autograph=False)() if in_graph else run()
    return ids.numpy()[:, 0], scores.numpy()[:, 0]


def assert_alike(actual, expected):
    np.testing.assert_array_equal(actual[0], expected[0])
    np.testing.assert_allclose(actual[1], expected[1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "variants",
    [
        {"positions": "sinusoidal", "num_layers": 2},
        {"positions": "rotary", "attention": "local:2", "num_heads": 3, "d_k": 4, "d_v": 2},
        {"positions": "relative", "norm": "pre"},
        {"positions": "shaw", "attention": "sparse:2", "activation": "swiglu"},
        {"positions": "learned", "max_positions": 4, "attention": "additive"},
    ],
    ids=lambda variants: variants["positions"],
)
def test_a_model_translates_in_blocks_as_it_does_token_by_token(variants):
    model = random_model(**variants)
    expected = translate_with(model, GreedySearch())
    assert len({*map(tuple, expected[0].tolist())}) > BATCH // 2
    assert_alike(translate_with(model, BlockwiseSearch(), in_graph=True), expected)


@pytest.fixture(scope="module")
def model():
    return random_model(positions="rotary")


MARKS = np.array([5, 6], np.int32)
FORBIDDEN = ForbiddenWords(["f", "h d"], [""] * 4 + [f" {letter}" for letter in "abcdefghi"])
RULES = {
    "tokens": lambda: Constraints(
        no_repeat_ngram_size=2,
        repetition_penalty=1.5,
        barred=(7,),
        free_prefix=1,
        forbidden=FORBIDDEN,
    ),
    "spans": lambda: SpanConstraints(
        marks=MARKS,
        count=tf.constant(RANDOM.integers(0, 3, (BATCH, 2)), tf.int32),
        opened_by=tf.constant([[-1, 0], [-1, -1]] * (BATCH // 2), tf.int32),
    ),
    "trees": lambda: TreeConstraints(
        opens=np.array([-1] * 4 + [0, 1] + [-1] * 7),
        closes=np.array([-1] * 6 + [0, 1] + [-1] * 5),
        is_leaf=np.arange(V) > 7,
        count=tf.constant(RANDOM.integers(1, 5, BATCH)),
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_rules_on_earlier_tokens_hold_for_each_token_of_a_block(model, name):
    rules = RULES[name]()
    prefixes = np.minimum(PREFIXES, 4 * (PREFIXES > 0)) if name == "trees" else PREFIXES
    expected = translate_with(model, GreedySearch(rules), prefixes=prefixes)
    by_blocks = translate_with(model, BlockwiseSearch(rules), prefixes=prefixes, in_graph=True)
    assert_alike(by_blocks, expected)


def test_other_sentences_and_their_order_change_nothing(model):
    together, _ = translate_with(model, BlockwiseSearch())
    backwards, _ = translate_with(model, BlockwiseSearch(), slice(None, None, -1))
    np.testing.assert_array_equal(backwards[::-1], together)
    for row in range(0, BATCH, 9):
        alone, _ = translate_with(model, BlockwiseSearch(), slice(row, row + 1))
        np.testing.assert_array_equal(alone[0], together[row, : alone.shape[1]])
        assert not together[row, alone.shape[1] :].any()


def test_an_attention_whose_state_cannot_go_back_is_refused():
    with pytest.raises(ValueError, match=r"^`block_size` must be 1 for attention='linear', "):
        random_model(attention="linear")
    assert not isinstance(BlockwiseSearch(), Sampling)


def test_a_stepper_without_blocks_is_refused():
    """Such as an ensemble's: the error named an attribute and no remedy."""
    with pytest.raises(ValueError, match=r"^a blockwise search needs .* a TableStepper\. Search"):
        BlockwiseSearch()(TableStepper([]), (), tf.constant([1]))
