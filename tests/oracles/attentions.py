"""What may stand in the place of section 3.2.1's attention and 3.5's positions (Vaswani et al.
2017), in NumPy float64, written from each cited paper: one head, one pair of positions at a time.

Nothing here imports keras_transformer. `may` are booleans (T, S), True = may attend; a query that
may attend to nothing gets zeros.
"""

import math

import numpy as np


def scaled(query, key):
    """Vaswani et al. 2017, eq. 1."""
    return float(query @ key) / math.sqrt(len(key))


def unscaled(query, key):
    """Luong et al. 2015, section 3.1, "dot"."""
    return float(query @ key)


def additive(vector):
    """Bahdanau et al. 2014, appendix A.1.2: v^T tanh(W s + U h), with W s and U h given."""
    return lambda query, key: float(vector @ np.tanh(query + key))


def head(query, key, value, may, score):
    """Softmax over the keys that may be attended to, of score(t, s), times the values.

    Args:
        query: (T, d_k).
        key: (S, d_k).
        value: a function of (t, s) that gives (d_v,).
        may: booleans, (T, S).
        score: a function of (t, s).
    """
    rows = []
    for t in range(len(query)):
        allowed = [s for s in range(len(key)) if may[t, s]]
        exponentials = {s: math.exp(score(t, s)) for s in allowed}
        total = sum(exponentials.values())
        terms = [exponentials[s] / total * value(t, s) for s in allowed]
        rows.append(np.sum(terms, axis=0) if terms else 0 * value(t, 0))
    return np.array(rows)


def plain(query, key, value, may, similarity=scaled):
    return head(query, key, lambda t, s: value[s], may, lambda t, s: similarity(query[t], key[s]))


def alibi(query, key, value, may, slope):
    """Press et al. 2022, section 3, with the distance to either side."""

    def score(t, s):
        return scaled(query[t], key[s]) - slope * abs(s - t)

    return head(query, key, lambda t, s: value[s], may, score)


def t5_bucket(distance, bidirectional, num_buckets=32, max_distance=128):
    """Raffel et al. 2020, section 2.1, "offset up to 128 beyond which we assign all to the same
    embedding"; the formula is that of their published code: exact up to half of a direction's
    buckets, then logarithmic.

    Args:
        distance: key position - query position.
    """
    bucket = 0
    if bidirectional:
        num_buckets //= 2
        bucket = num_buckets if distance > 0 else 0
        distance = abs(distance)
    else:
        distance = max(-distance, 0)
    exact = num_buckets // 2
    if distance < exact:
        return bucket + distance
    share = math.log(distance / exact) / math.log(max_distance / exact)
    # The logarithms of a power of two and its root may be a hair too small.
    return bucket + min(exact + math.floor(share * (num_buckets - exact) + 1e-9), num_buckets - 1)


def with_bias(query, key, value, may, bias, bidirectional, similarity=scaled, **buckets):
    """Raffel et al. 2020: a learned scalar by bucket, added to the logit."""

    def score(t, s):
        bucket = t5_bucket(s - t, bidirectional, **buckets)
        return similarity(query[t], key[s]) + bias[bucket]

    return head(query, key, lambda t, s: value[s], may, score)


def shaw(query, key, value, may, keys, values, clip):
    """Shaw et al. 2018, eq. 3 to 5."""

    def row(t, s):
        return max(-clip, min(clip, s - t)) + clip

    def score(t, s):
        return float(query[t] @ (key[s] + keys[row(t, s)])) / math.sqrt(query.shape[1])

    return head(query, key, lambda t, s: value[s] + values[row(t, s)], may, score)


def rotation(position, d_k):
    """Su et al. 2021, eq. 15: the matrix R of a position, block by block."""
    matrix = np.zeros((d_k, d_k))
    for i in range(d_k // 2):
        angle = position * 10000.0 ** (-2 * i / d_k)
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [
            [math.cos(angle), -math.sin(angle)],
            [math.sin(angle), math.cos(angle)],
        ]
    return matrix


def rotary(query, key, value, may, similarity=scaled):
    """Su et al. 2021, eq. 16: (R_m q)^T (R_n k)."""
    d_k = query.shape[1]
    turned_query, turned_key = (
        np.stack([rotation(position, d_k) @ row for position, row in enumerate(rows)])
        for rows in (query, key)
    )
    return plain(turned_query, turned_key, value, may, similarity)


def near(length, radius):
    """Vaswani et al. 2017, section 4: a neighbourhood of each position."""
    return np.array([[abs(t - s) <= radius for s in range(length)] for t in range(length)])


def strided(length, stride):
    """Child et al. 2019, section 4.3: A^(1) and A^(2) joined, in both directions."""
    return np.array(
        [
            [abs(t - s) <= stride or (t - s) % stride == 0 for s in range(length)]
            for t in range(length)
        ]
    )


def low_rank(query, key, value, may, key_projection, value_projection):
    """Wang et al. 2020, eq. 7, for one head: softmax(Q (E K)^T / sqrt(d)) F V. Keys that no query
    may attend to are 0. E and F are (n, K) here; rows beyond the last are like it.
    """
    real = may.any(axis=0)
    rows = [min(s, len(key_projection) - 1) for s in range(len(key))]
    keys = (key_projection[rows] * real[:, None]).T @ key
    values = (value_projection[rows] * real[:, None]).T @ value
    return plain(query, keys, values, np.ones((len(query), len(keys)), bool))


def linear(query, key, value, may):
    """Katharopoulos et al. 2020, eq. 4 and 7: phi(x) = elu(x) + 1 in the place of the softmax."""

    def phi(x):
        return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))

    rows = []
    for t in range(len(query)):
        shares = np.array([float(phi(query[t]) @ phi(key[s])) for s in range(len(key))]) * may[t]
        rows.append(shares @ value / shares.sum() if shares.any() else 0 * value[0])
    return np.array(rows)
