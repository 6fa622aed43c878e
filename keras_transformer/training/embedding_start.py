"""Embeddings that start from counts of pieces occurring together (Vaswani et al. 2017, section 3.4:
the table that source, target and projection share; the paper does not say how it starts).

References: Church and Hanks 1990, "Word Association Norms, Mutual Information, and Lexicography";
    Levy and Goldberg 2014, "Neural Word Embedding as Implicit Matrix Factorization".
"""

import keras
import numpy as np

# The side whose pieces the rows of a table stand for, if source and target have separate
# vocabularies. Every model has the first table; the others exist if they are not tied to it.
SIDES = {
    "embedding/table": "target",
    "source_embedding/table": "source",
    "projection/table": "target",
    "output_bias/bias": "target",
    "embedding/output_bias": "target",
    "projection/output_bias": "target",
}
# Smooths the probabilities of contexts, for rare pieces, as in Levy, Goldberg and Dagan 2015.
CONTEXT_POWER = 0.75
# Share of a row's squared length; the rest stays random.
SHARE = 0.7
ITERATIONS = 8
EMBEDDINGS = {path: side for path, side in SIDES.items() if path.endswith("embedding/table")}


def start_embeddings(model: keras.Model, counts: np.ndarray, seed: int) -> None:
    """Mix what `embeddings` computes into a model's random tables of embeddings, (V, d_model).

        row = sqrt(0.7) s e + sqrt(0.3) random row,    s^2: mean square length of the random rows

    The row of a piece that occurs with no other stays random. A projection with a table of its own
    is left as it is. The counts are those of `cooccurrences`: (V, V), or (2 V, 2 V) of the source's
    pieces and the target's after them.
    """
    tables = {weight.path: weight for weight in model.weights if weight.path in EMBEDDINGS}
    vectors = embeddings(counts, next(iter(tables.values())).shape[1], seed)
    for path, table in tables.items():
        random = np.asarray(keras.ops.stop_gradient(table))
        rows = vectors[: len(random)] if EMBEDDINGS[path] == "source" else vectors[-len(random) :]
        length = np.sqrt(np.mean(np.sum(random**2, axis=1)))
        mixed = np.sqrt(SHARE) * length * rows + np.sqrt(1 - SHARE) * random
        table.assign(np.where(rows.any(axis=1, keepdims=True), mixed, random))


def embeddings(counts: np.ndarray, d_model: int, seed: int) -> np.ndarray:
    """Compute vectors of length 1, float32 (V, d_model), whose products approximate the positive
    pointwise mutual information of two pieces, from how often these co-occur, (V, V), symmetric.

        M_ij = max(0, log P(i, j) / (P(i) P'(j))),    P'(j) proportional to P(j)^0.75
        e_i  = row i of U sqrt(L) R, divided by its length

    L and U are the largest of the 1.5 d_model eigenvalues of the symmetric part of M that are
    farthest from 0, and their eigenvectors. R is a random rotation, so that no dimension stands
    out. The vector of a piece that occurs with no other is 0.
    """
    rng = np.random.default_rng(seed)
    vectors = _eigenvectors(_information(counts), d_model, rng)
    rotation, _ = np.linalg.qr(rng.normal(size=(d_model, d_model)))
    vectors = vectors @ rotation.astype(np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 1e-6)


def _information(counts):
    frequencies = counts.sum(axis=1)
    contexts = frequencies**CONTEXT_POWER
    # The lower bound prevents a division by 0 if no pieces co-occur, where all counts are 0.
    expected = frequencies[:, None] * contexts / max(contexts.sum(), 1e-30)
    ratios = np.divide(counts, expected, out=np.ones_like(counts), where=counts > 0)
    information = np.maximum(np.log(ratios), 0)
    return (information + information.T) / 2


def _eigenvectors(matrix, count, rng):
    """Compute U sqrt(L) by subspace iteration: all eigenvalues would take minutes. It has `count`
    columns; those of negative eigenvalues are 0.
    """
    size = len(matrix)
    basis = rng.normal(size=(size, min(size, count + count // 2))).astype(np.float32)
    for _ in range(ITERATIONS):
        basis, _ = np.linalg.qr(matrix @ basis)
    values, rotation = np.linalg.eigh(basis.T @ matrix @ basis)
    largest = np.argsort(values)[::-1][:count]
    columns = basis @ rotation[:, largest] * np.sqrt(np.maximum(values[largest], 0))
    return np.pad(columns, [(0, 0), (0, count - columns.shape[1])])
