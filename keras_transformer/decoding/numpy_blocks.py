"""Greedy search (Vaswani et al. 2017, section 6.1) in fewer steps, as `blockwise` has it, in NumPy.

A model that reads blocks has, besides what `numpy_search` asks for, their size k as `block_size`,
and for one sentence at a time

    block(ids, position, bias, factor, state, source) -> logs, tokens, count, proposed, state

    ids             a token that is certain and k - 1 that are proposed after it, (1, k)
    position        how many tokens came before them
    bias, factor    as of a step, each broadcastable to (k, V)
    logs, tokens    the likeliest after each, (k, 1), of which the first `count` are certain
    proposed        k - 1 tokens after these; the state has lost what fell
    source          as of a step, and last the k - 1 tokens that are proposed after BOS, (1, k - 1)
"""

from collections.abc import Mapping

import numpy as np

from keras_transformer.decoding.numpy_rules import NEVER, NumpyRules
from keras_transformer.decoding.numpy_search import Hypothesis, NumpySearch
from pipelines.special_ids import BOS, EOS, PAD


class NumpyBlocks(NumpySearch):
    """`NumpySearch` for a beam of 1, one sentence after the other, a block at a time."""

    def _run(self, model, source, searched, rules):
        found = []
        for row in range(len(searched["limit"])):
            wished = {name: one[row : row + 1] for name, one in searched.items()}
            of_row = [one[row : row + 1] for one in source]
            found.append(self._of_sentence(model, of_row, wished, rules))
        return found

    def _of_sentence(self, model, source, wished, rules):
        """The hypothesis of one sentence; none where no token may come."""
        [prefix] = wished["prefix"].tolist()
        ids = [BOS]
        logs = []
        proposed = source[-1][0].tolist()
        state = model.start(1)
        while ids[-1] != EOS and len(logs) < wished["limit"]:
            position = len(logs)
            given = [one for one in prefix[position : position + len(proposed)] if one != PAD]
            block = [ids[-1], *given, *proposed[len(given) :]]
            bias, factor = _asked(rules, wished, ids, block)
            newest, tokens, count, proposed, state = model.block(
                np.array([block], np.int32),
                np.array(position, np.int32),
                bias,
                factor,
                state,
                source,
            )
            ids += tokens[:count, 0].tolist()
            logs += newest[:count, 0].tolist()
            proposed = proposed.tolist()
        if NEVER in logs or ids[-1] != EOS:
            return []
        first = self._given
        return [Hypothesis(sum(logs[first:]), ids[1 + first :], logs[first:])]


def _asked(
    rules: NumpyRules, wished: Mapping[str, np.ndarray], ids: list[int], block: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Bias and factor after each token of a block that begins with the last of the ids that have
    come, BOS the first of these.
    """
    position = len(ids) - 1
    if position in rules.free and position + len(block) - 1 in rules.free:
        return rules(wished, [ids])
    each = [rules(wished, [ids + block[1 : 1 + place]]) for place in range(len(block))]
    bias, factor = (np.concatenate(np.broadcast_arrays(*one)) for one in zip(*each, strict=True))
    return bias, factor
