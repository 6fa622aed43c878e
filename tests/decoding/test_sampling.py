"""One decoding step against NumPy float64 and a plain sort; and sampling against softmax in
float64: frequencies, the tokens that may be drawn, and what a draw depends on.
"""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import enumeration
from oracles.enumeration import Table, decode, distribution

from keras_transformer.decoding import BeamSearch, GreedySearch, Sampling, length_penalty, sampling
from keras_transformer.decoding.candidates import (
    BLOCK,
    FREE,
    best_tokens,
    log_normalizer,
    next_tokens,
    possible_tokens,
    token_log_probabilities,
)
from keras_transformer.models import Transformer
from pipelines.special_ids import BOS, EOS, PAD, UNK

WIDTHS = [4, 5, 63, 64, 65, 300, 640]


def random_logits(seed, rows, width, levels=None):
    random = np.random.default_rng(seed)
    size = (rows, width)
    logits = random.integers(0, levels, size) if levels else 5 * random.normal(size=size)
    return logits.astype("float32")


def sorted_tokens(row, count, forced, may_end):
    """The best by a stable sort, which leaves equal ones in the order of their ids."""
    row = row.astype("float64")
    row[
        np.arange(len(row)) != forced if forced != FREE else [PAD, BOS, *([] if may_end else [EOS])]
    ] = -np.inf
    return np.argsort(-row, kind="stable")[: min(count, np.isfinite(row).sum())]


@pytest.mark.parametrize("width", WIDTHS)
def test_the_normalizer_is_float64_s(width):
    logits = random_logits(0, 50, width)
    expected = np.log(np.exp(logits.astype("float64")).sum(axis=1))
    np.testing.assert_allclose(log_normalizer(tf.constant(logits)), expected, rtol=1e-6, atol=1e-6)


def test_large_logits_stay_finite():
    normalizers = log_normalizer(tf.constant([[1e4] * 8, [-1e4] * 8]))
    np.testing.assert_allclose(normalizers, [1e4 + np.log(8), -1e4 + np.log(8)], rtol=1e-6)


@pytest.mark.parametrize("width", [*WIDTHS, 7, 8000, 37000])
def test_no_bit_of_a_normalizer_depends_on_the_other_rows(width):
    logits = random_logits(1, 67, width)
    together = log_normalizer(tf.constant(logits)).numpy()
    for row in range(0, 67, 5):
        expected = together[row : row + 1]
        np.testing.assert_array_equal(log_normalizer(tf.constant(logits[row : row + 1])), expected)
    np.testing.assert_array_equal(log_normalizer(tf.constant(logits[::-1].copy())), together[::-1])
    np.testing.assert_array_equal(log_normalizer(tf.constant(logits[3:41])), together[3:41])


@settings(max_examples=20)
@given(
    seed=st.integers(0, 2**32),
    width=st.sampled_from(WIDTHS),
    levels=st.sampled_from([None, 1, 2, 3, 50]),
    count=st.integers(1, 200),
    data=st.data(),
)
def test_the_best_tokens_are_those_of_a_stable_sort(seed, width, levels, count, data):
    logits, count = random_logits(seed, 5, width, levels), min(count, width)
    forced = data.draw(st.lists(st.sampled_from([FREE, FREE, EOS, UNK]), min_size=5, max_size=5))
    may_end = data.draw(st.none() | st.lists(st.booleans(), min_size=5, max_size=5))
    barring = [tf.constant(forced)] + ([] if may_end is None else [tf.constant(may_end)])
    values, ids = best_tokens(tf.constant(logits), count, *barring)
    possible = possible_tokens(tf.constant(logits), *barring).numpy()
    for row, (row_values, row_ids) in enumerate(zip(values.numpy(), ids.numpy(), strict=True)):
        expected = sorted_tokens(logits[row], count, forced[row], may_end is None or may_end[row])
        there = np.isfinite(row_values)
        assert row_ids[there].tolist() == expected.tolist()
        np.testing.assert_array_equal(row_values[there], logits[row, row_ids[there]])
        everything = sorted_tokens(logits[row], width, forced[row], may_end is None or may_end[row])
        assert np.flatnonzero(np.isfinite(possible[row])).tolist() == sorted(everything)
        np.testing.assert_array_equal(possible[row, everything], logits[row, everything])


def test_blocks_are_in_the_order_of_their_ids_whatever_their_maxima():
    logits = np.zeros((1, 3 * BLOCK), "float32")
    logits[0, [BLOCK - 1, 2 * BLOCK]] = 1.0, 2.0
    _, ids = best_tokens(tf.constant(logits), 3, tf.constant([FREE]))
    assert ids.numpy().tolist() == [[2 * BLOCK, BLOCK - 1, 1]]


# The probabilities of the next tokens against the definition, in NumPy float64.
SHAPES = [(1.0, 0, 1.0), (0.5, 0, 1.0), (2.0, 3, 1.0), (1.0, 0, 0.7), (3.0, 6, 0.5), (1.0, 1, 0.1)]
SIZE = 30


def definition(logits, *shape):
    """Return ids, likeliest first, and the probability that each is drawn."""
    order = [id_ for id_ in np.argsort(-logits, kind="stable") if id_ not in (PAD, BOS)]
    return order, distribution(logits, *shape)[order]


def next_tokens_by(logits, shapes, count):
    temperature, top_k, top_p = map(np.array, zip(*shapes, strict=True))
    temperature, top_p = (tf.constant(column, tf.float32) for column in (temperature, top_p))
    return next_tokens(tf.constant(logits), temperature, tf.constant(top_k), top_p, count)


def test_each_row_follows_the_definition_with_its_own_options():
    logits = np.random.default_rng(2).normal(0, 2, (len(SHAPES), SIZE)).astype("float32")
    logits[:, [PAD, BOS]] = 9  # the likeliest, which never come
    ids, shares, probabilities = next_tokens_by(logits, SHAPES, 20)
    assert ids.shape == (len(SHAPES), 20)
    softmax = np.exp(logits.astype(np.float64))
    softmax /= softmax.sum(axis=1, keepdims=True)
    for row, shape in enumerate(SHAPES):
        order, expected = definition(logits[row], *shape)
        assert ids[row].numpy().tolist() == order[:20]
        np.testing.assert_allclose(shares[row], expected[:20], rtol=1e-5)
        np.testing.assert_allclose(probabilities[row], softmax[row][order[:20]], rtol=1e-5)


def test_a_small_vocabulary_has_fewer_next_tokens():
    ids, shares, _ = next_tokens_by(np.zeros((1, 6), "float32"), [(1.0, 0, 1.0)], 20)
    assert ids.shape == (1, 6)
    np.testing.assert_allclose(shares, [[0.25] * 4 + [0.0] * 2], rtol=1e-6)


# The model scores the output of a search as the search did (section 6.1).
SOURCE = [[5, 9, 7, EOS, PAD, PAD], [8, 8, 12, 11, 30, EOS], [6, EOS, PAD, PAD, PAD, PAD]]
LIMITS = [9, 4, 12]


@pytest.fixture(scope="module")
def model():
    model = Transformer(vocabulary_size=40, num_layers=1, d_model=16, d_ff=32, num_heads=4)
    generator = np.random.default_rng(3)
    for weight in sorted(model.weights, key=lambda weight: weight.path):
        weight.assign(generator.normal(size=weight.shape) / 3)
    return model


def test_token_log_probabilities_are_the_log_softmax_of_float64_and_0_for_padding():
    logits = np.random.default_rng(0).normal(size=(2, 3, 7)).astype("float32")
    ids = np.array([[4, 6, 3], [5, 3, 0]])
    exact = logits.astype("float64")
    exact -= np.log(np.exp(exact).sum(axis=-1, keepdims=True))
    expected = np.take_along_axis(exact, ids[..., None], axis=-1)[..., 0] * (ids != 0)
    log_probabilities = token_log_probabilities(tf.constant(logits), tf.constant(ids))
    np.testing.assert_allclose(log_probabilities, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("search", "alpha"),
    [(GreedySearch(), 0.0), (BeamSearch(4, 0.6, 4), 0.6), (BeamSearch(3, 0.0, 2), 0.0)],
    ids=["greedy", "beam", "sum"],
)
def test_a_search_scores_its_translations_as_the_model_does(model, search, alpha):
    source = tf.constant(SOURCE)
    ids, scores = search(model.stepper(), model.encode(source), tf.constant(LIMITS))
    for n in range(ids.shape[1]):
        target = ids[:, n]
        shifted = tf.concat([tf.fill([len(SOURCE), 1], BOS), target[:, :-1]], axis=1)
        log_probabilities = token_log_probabilities(
            model((source, shifted), training=False), target
        )
        lengths = tf.math.count_nonzero(target, axis=1, dtype=tf.int32)
        rescored = tf.reduce_sum(log_probabilities, axis=1) / length_penalty(lengths, alpha)
        np.testing.assert_allclose(rescored, scores[:, n], rtol=1e-5, atol=1e-5)
    assert len(set(tf.math.count_nonzero(ids[:, 0], axis=1).numpy())) > 1


ATOL = 1e-5
DRAWS = 2000
# PAD and BOS, the likeliest, never come.
LOGITS = np.array([9.0, 0.4, 9.0, 0.0, 2.0, 1.3, -0.7, 1.9, -3.0, 0.9], np.float32)
SENTENCES = [(1, 6), (2, 1), (3, 4), (4, 8), (5, 2)]  # seeds of tables, and limits


def draw(seed=1, tokens=1, **shape):
    """Draw the first tokens of many sentences that differ in their seeds alone: (DRAWS, tokens).
    EOS is drawn as any other.
    """
    search, logits = Sampling(**shape, seed=seed), tf.constant(LOGITS)

    stepper = enumeration.Stateless(
        lambda ids, position, source: tf.tile(logits[None, None], [tf.shape(ids)[0], 1, 1])
    )

    @tf.function(input_signature=[tf.TensorSpec([DRAWS], tf.int64)], autograph=False)
    def search_all(seeds):
        return search(stepper, (), tf.fill([DRAWS], tokens + 1), seeds=seeds)[0][:, 0]

    return search_all(tf.range(DRAWS, dtype=tf.int64)).numpy()[:, :tokens]


def assert_frequencies_equal(counts, expected):
    """Chi-square is below a bound that chance exceeds less than once in 10,000 times, and tokens of
    probability 0 never come.
    """
    possible = expected > 0
    assert not counts[~possible].any()
    expected = expected[possible] * counts.sum()
    freedom = possible.sum() - 1
    statistic = ((counts[possible] - expected) ** 2 / expected).sum()
    assert statistic < freedom + 6 * np.sqrt(2 * freedom) + 1


SAMPLED_SHAPES = [
    {},
    {"temperature": 0.5},
    {"temperature": 2.5},
    {"top_p": 0.9, "temperature": 1.7},
    {"top_k": 5, "top_p": 0.8, "temperature": 1.3},
]


@pytest.mark.parametrize("shape", SAMPLED_SHAPES, ids=str)
def test_tokens_are_drawn_as_often_as_the_softmax_says(shape):
    counts = np.bincount(draw(**shape)[:, 0], minlength=len(LOGITS))
    assert_frequencies_equal(counts, distribution(LOGITS, **shape))


def test_the_next_draw_does_not_depend_on_the_last():
    weights = distribution(LOGITS)
    weights[EOS] = 0  # after which nothing is drawn
    pairs = draw(tokens=2)
    pairs = pairs[(pairs != EOS).all(axis=1)]
    counts = np.bincount(pairs[:, 0] * len(weights) + pairs[:, 1], minlength=len(weights) ** 2)
    assert_frequencies_equal(counts, np.outer(weights, weights).ravel() / weights.sum() ** 2)


def drawing_probabilities(shape, logits):
    """Return the probability with which each token is drawn."""
    search = Sampling(**shape)
    rows = tf.constant(logits)[None]
    _, tokens, drawable = search._log_weights(
        rows, tf.constant([-1]), None, tf.constant([search.temperature], tf.float32)
    )
    probabilities = np.zeros(len(logits))
    probabilities[tokens[0]] = tf.nn.softmax(tf.cast(drawable[0], tf.float64))
    return probabilities


@settings(max_examples=15)
@given(
    seed=st.integers(0, 2**32),
    top_k=st.integers(0, 12),
    top_p=st.sampled_from([0.01, 0.3, 0.5, 0.8, 0.95, 1.0]),
    temperature=st.sampled_from([0.7, 1.0, 2.0]),
)
def test_top_k_and_top_p_draw_the_fewest_likeliest_tokens(seed, top_k, top_p, temperature):
    logits = np.random.default_rng(seed).normal(0, 2, 12).astype("float32")
    shape = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    expected = distribution(logits, **shape)
    probabilities = drawing_probabilities(shape, logits)
    np.testing.assert_allclose(probabilities, expected, rtol=1e-5, atol=1e-6)
    assert set(np.flatnonzero(probabilities)) == set(np.flatnonzero(expected))


def test_the_noise_is_gumbel_s():
    """Against its distribution function, exp(-exp(-x)), by Kolmogorov and Smirnov."""
    keys = tf.cast(tf.range(200), tf.uint64) * 1_000_003
    tokens = tf.tile(tf.range(100)[None], [200, 1])
    noise = np.sort(sampling._gumbel(keys, 3, tokens, 100).numpy().ravel().astype(np.float64))
    held = np.arange(1, noise.size + 1) / noise.size
    assert abs(np.exp(-np.exp(-noise)) - held).max() < 1.95 / np.sqrt(noise.size)
    assert np.isfinite(noise).all()


@pytest.mark.parametrize(
    "shape",
    [{"temperature": 1e-4}, {"temperature": 1e-4, "top_p": 0.9}, {"top_k": 1}, {"top_p": 1e-6}],
    ids=str,
)
def test_a_temperature_near_0_or_a_single_likely_token_is_greedy(shape):
    tables = [Table(seed, 4) for seed, _ in SENTENCES]
    limits = [limit for _, limit in SENTENCES]
    results = (decode(search, tables, limits) for search in (Sampling(**shape), GreedySearch()))
    sampled, likeliest = ([ids for [(ids, _)] in hypotheses] for hypotheses in results)
    assert sampled == likeliest


@pytest.mark.parametrize(
    "shape", [{}, {"temperature": 0.3}, {"temperature": 5, "top_k": 6}, {"top_p": 0.9}], ids=str
)
def test_a_score_is_log_p_of_the_model_and_the_best_come_first(shape):
    tables = [Table(seed, 4, levels=3) for seed, _ in SENTENCES]
    limits = [min(limit, 6) for _, limit in SENTENCES]
    seeds = tf.range(5, dtype=tf.int64)
    everything, two = (
        decode(Sampling(6, num_hypotheses=n, **shape), tables, limits, seeds=seeds) for n in (6, 2)
    )
    assert two == [hypotheses[:2] for hypotheses in everything]
    for hypotheses, table, limit in zip(everything, tables, limits, strict=True):
        assert len(hypotheses) == 6
        scores = [score for _, score in hypotheses]
        assert scores == sorted(scores, reverse=True)
        expected = [table.score(ids, 0.0) for ids, _ in hypotheses]
        np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=ATOL)
        assert all(
            len(ids) <= limit and ids[-1] == EOS and not {PAD, BOS, EOS} & set(ids[:-1])
            for ids, _ in hypotheses
        )


def sample(sentences, seeds, seed=1, samples=3):
    """Return the ids of each sentence's samples, from tables with few different logits."""
    tables = [Table(number, 4, levels=2) for number, _ in sentences]
    limits = [limit for _, limit in sentences]
    search = Sampling(samples, num_hypotheses=samples, seed=seed)
    results = decode(search, tables, limits, seeds=tf.constant(seeds, tf.int64))
    return [[ids for ids, _ in hypotheses] for hypotheses in results]


def test_a_seed_gives_the_same_samples_again_and_another_seed_others():
    seeds = [-(2**63), -1, 0, 7, 2**63 - 1]
    first = sample(SENTENCES, seeds)
    assert sample(SENTENCES, seeds) == first
    assert sample(SENTENCES, seeds, seed=2) != first
    changed = sample(SENTENCES, [*seeds[:3], 8, 9])
    assert changed[:3] == first[:3]
    assert changed[3] != first[3]


def test_other_sentences_their_order_and_limits_change_nothing():
    seeds = [11, 12, 13, 14, 15]
    alone = [sample([sentence], [seed])[0] for sentence, seed in zip(SENTENCES, seeds, strict=True)]
    for order in ([3, 0, 4, 2, 1], [2, 1], [4, 0, 0]):
        samples = sample([SENTENCES[place] for place in order], [seeds[place] for place in order])
        assert samples == [alone[place] for place in order]


def test_the_first_samples_do_not_depend_on_how_many_are_drawn():
    few, many = sample(SENTENCES, range(5), samples=2), sample(SENTENCES, range(5), samples=7)
    assert all(set(few_ids) <= set(many_ids) for few_ids, many_ids in zip(few, many, strict=True))


def test_options_of_each_sentence_draw_what_a_sampling_with_these_options_draws():
    temperatures, seeds, keys = [0.5, 1.0, 3.0, 1.0, 2.0], [1, 2, 1, 3, 2**40], [11, 12, 13, 14, 15]
    tables = [Table(number, 4, levels=2) for number, _ in SENTENCES]
    limits = [limit for _, limit in SENTENCES]
    options = {"temperature": tf.constant(temperatures), "seed": tf.constant(seeds, tf.int64)}
    search = Sampling(3, **options, num_hypotheses=3)
    together = decode(search, tables, limits, seeds=tf.constant(keys, tf.int64))
    rows = zip(together, tables, limits, temperatures, seeds, keys, strict=True)
    for hypotheses, table, limit, temperature, seed, key in rows:
        search = Sampling(3, temperature=temperature, seed=seed, num_hypotheses=3)
        [alone] = decode(search, [table], [limit], seeds=tf.constant([key], tf.int64))
        assert hypotheses == alone


def test_minima_and_prefixes_are_kept_and_barred_tokens_never_drawn():
    tables = [Table(seed, 4, levels=2) for seed in range(4)]
    search = Sampling(5, num_hypotheses=5, temperature=3.0)
    prefixes = [(), (5, UNK), (4,), (6, 6, 6)]
    results = decode(search, tables, [4, 6, 8, 3], minima=[9, 1, 8, 2], prefixes=prefixes)
    assert all(len(ids) == 4 for ids, _ in results[0])
    assert all(ids[:2] == (5, UNK) for ids, _ in results[1])
    assert all(ids[:1] == (4,) and len(ids) == 8 for ids, _ in results[2])
    assert [ids for ids, _ in results[3]] == [(6, 6, 6, EOS)] * 5
    for table, hypotheses in zip(tables, results, strict=True):
        assert [score for _, score in hypotheses] == pytest.approx(
            [table.score(ids, 0.0) for ids, _ in hypotheses], rel=1e-5, abs=ATOL
        )
