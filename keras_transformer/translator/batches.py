"""How the sentences of a file are shared out to batches."""


def batches_of_tokens(lengths, batch_tokens):
    """Put lines of similar length together, long ones first.

    The last batches, over which not all threads have work, are then short.

    Args:
        lengths: tokens of each line.
        batch_tokens: most tokens of a batch with padding; a longer line is a batch of its own.

    Returns:
        Lists of line numbers.
    """
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    batches = []
    while order:
        size = max(1, batch_tokens // lengths[order[0]])
        batches.append(order[:size])
        del order[:size]
    return batches
