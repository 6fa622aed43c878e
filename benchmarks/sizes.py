"""Sizes of the measured models, and the work of training them (Vaswani et al. 2017, table 3)."""

SIZES = {
    "small": {"num_layers": 3, "d_model": 256, "d_ff": 1024, "num_heads": 4},
    "base": {"num_layers": 6, "d_model": 512, "d_ff": 2048, "num_heads": 8},
}
DROPOUT = 0.1
LABEL_SMOOTHING = 0.1


def training_flops(size, vocabulary_size, source_lengths, target_lengths):
    """Count the floating-point operations of all matrix products of one update.

    A product of (m, k) and (k, n) takes 2 m n k operations. Training does three: the forward
    product and the gradient of each factor. Attention counts every pair of positions, also those
    that the causal mask hides.

    Args:
        size: an entry of `SIZES`.
        vocabulary_size: V.
        source_lengths, target_lengths: tokens of each sentence, (sentences,). To count the padding
            too, pass the width of the batch for each.

    Returns:
        Operations, a float.
    """
    layers = size["num_layers"]
    d_model = size["d_model"]
    d_ff = size["d_ff"]
    source = float(source_lengths.sum())
    target = float(target_lengths.sum())
    # W^Q, W^K, W^V, W^O; in the decoder's second attention W^K and W^V see the source.
    projections = d_model**2 * (4 * source + 4 * target + 2 * target + 2 * source)
    feed_forward = 2 * d_model * d_ff * (source + target)
    pairs = (source_lengths**2 + target_lengths**2 + source_lengths * target_lengths).sum()
    attention = 2 * d_model * float(pairs)
    logits = d_model * vocabulary_size * target
    return 3 * 2 * (layers * (projections + feed_forward + attention) + logits)
