"""How sentences are shared out to batches, and batches to the cores of a machine, to translate as many a second as it can."""

import os

import tensorflow as tf


def spread_over_cores():
    """Let each operation of TensorFlow work on one core, before it is asked for anything.

    Decoding is made of small operations: two batches at once on a core each are decoded faster than one batch on two cores.

    Returns:
        How many batches to decode at once.
    """
    tf.config.threading.set_intra_op_parallelism_threads(1)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def batches_of_tokens(lengths, batch_tokens):
    """Numbers of lines of similar length, the long ones first: the last batches, over which not all threads have work, are short."""
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    batches = []
    while order:
        size = max(1, batch_tokens // lengths[order[0]])
        batches.append(order[:size])
        del order[:size]
    return batches
