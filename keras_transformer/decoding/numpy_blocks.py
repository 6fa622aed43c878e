"""Greedy search (Vaswani et al. 2017, section 6.1) in fewer steps, as in `blockwise`, in NumPy.

A model that reads blocks has, besides what `numpy_search` needs, their size k as `block_size`, and
for one sentence at a time

    block(ids, position, bias, factor, state, source) -> logs, tokens, count, proposed, state

    ids             a token that is certain and the k - 1 proposed after it, (1, k)
    position        how many tokens came before them
    bias, factor    as in a step, each broadcastable to (k, V)
    logs, tokens    the likeliest after each, (k, 1), of which the first `count` are certain
    proposed        the k - 1 tokens proposed after these; the state is without rejected tokens
    source          as in a step, and last the k - 1 tokens proposed after BOS, (1, k - 1)
"""

from collections.abc import Mapping

import numpy as np

from keras_transformer.decoding.numpy_rules import NEVER, NumpyRules
from keras_transformer.decoding.numpy_search import Hypothesis, NumpySearch
from pipelines.special_ids import BOS, EOS, PAD


class NumpyBlocks(NumpySearch):
    """`NumpySearch` for a beam of 1, one sentence after the other, a block at a time."""

    def _run(self, model, source, unfinished, rules):
        hypotheses = []
        for row in range(len(unfinished["limit"])):
            sentence = {name: array[row : row + 1] for name, array in unfinished.items()}
            of_row = [array[row : row + 1] for array in source]
            hypotheses.append(self._of_sentence(model, of_row, sentence, rules))
        return hypotheses

    def _of_sentence(self, model, source, sentence, rules):
        """Return the hypothesis of one sentence; none if at some place no token may come."""
        [prefix] = sentence["prefix"].tolist()
        ids = [BOS]
        logs = []
        proposed = source[-1][0].tolist()
        state = model.start(1)
        while ids[-1] != EOS and len(logs) < sentence["limit"]:
            position = len(logs)
            ahead = prefix[position : position + len(proposed)]
            forced = [token for token in ahead if token != PAD]
            block = [ids[-1], *forced, *proposed[len(forced) :]]
            inputs = (np.array([block], np.int32), np.array(position, np.int32))
            inputs += _bias_and_factor(rules, sentence, ids, block)
            newest, tokens, count, proposed, state = model.block(*inputs, state, source)
            ids += tokens[:count, 0].tolist()
            logs += newest[:count, 0].tolist()
            proposed = proposed.tolist()
        if NEVER in logs or ids[-1] != EOS:
            return []
        first = self._free_prefix
        return [Hypothesis(sum(logs[first:]), ids[1 + first :], logs[first:])]


def _bias_and_factor(
    rules: NumpyRules, sentence: Mapping[str, np.ndarray], ids: list[int], block: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return bias and factor after each token of a block, which begins with the last of `ids`."""
    position = len(ids) - 1
    if position in rules.free and position + len(block) - 1 in rules.free:
        return rules(sentence, [ids])
    pairs = [rules(sentence, [ids + block[1 : 1 + place]]) for place in range(len(block))]
    biases, factors = zip(*pairs, strict=True)
    return tuple(np.concatenate(np.broadcast_arrays(*rows)) for rows in (biases, factors))
