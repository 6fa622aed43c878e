"""The machine's own limit, taking turns: TensorFlow's product of two large square matrices, in both
precisions.
"""

import time

import tensorflow as tf

from benchmarks.turns import Parent

WIDTH = 2048


def main():
    parent = Parent()
    product = tf.function(tf.matmul)
    matrices = {
        dtype: tf.cast(tf.random.normal((WIDTH, WIDTH)), dtype) for dtype in ("float32", "bfloat16")
    }
    parent.say(ready=True)
    for times in parent.orders():
        peaks = {}
        for dtype, matrix in matrices.items():
            seconds = []
            for _ in range(times + 1):
                began = time.perf_counter()
                product(matrix, matrix).numpy()
                seconds.append(time.perf_counter() - began)
            peaks[dtype] = 2 * WIDTH**3 / min(seconds[1:])
        parent.say(**peaks)


if __name__ == "__main__":
    main()
