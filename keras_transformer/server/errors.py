"""What a client is told when its request is not answered."""

import tensorflow as tf

# As TF Serving's `ToHTTPStatusCode` has them; what is not here is the server's own fault.
STATUSES = {
    tf.errors.INVALID_ARGUMENT: 400,
    tf.errors.FAILED_PRECONDITION: 400,
    tf.errors.OUT_OF_RANGE: 400,
    tf.errors.NOT_FOUND: 404,
    tf.errors.UNIMPLEMENTED: 501,
    tf.errors.RESOURCE_EXHAUSTED: 503,
    tf.errors.UNAVAILABLE: 503,
}


class RequestError(Exception):
    """A request that is refused.

    Args:
        status: of HTTP.
        message: what was expected, and what came.
    """

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status
        self.message = message


def of_tensorflow(error):
    """The `RequestError` for an error of TensorFlow's, without the places in the graph that it names."""
    lines = (error.message or "").strip().splitlines()
    return RequestError(STATUSES.get(error.error_code, 500), lines[0] if lines else type(error).__name__)
