"""Errors that are sent to a client, with their HTTP status."""

import tensorflow as tf

from keras_transformer.saved_models.session import reason_of

# As TF Serving's `ToHTTPStatusCode` has them; what is not here is the server's own fault.
STATUSES = {
    tf.errors.INVALID_ARGUMENT: 400,
    tf.errors.FAILED_PRECONDITION: 400,
    tf.errors.OUT_OF_RANGE: 400,
    tf.errors.NOT_FOUND: 404,
    tf.errors.UNIMPLEMENTED: 501,
    tf.errors.RESOURCE_EXHAUSTED: 503,
    tf.errors.UNAVAILABLE: 503,
    tf.errors.DEADLINE_EXCEEDED: 504,
}


class RequestError(Exception):
    """A request that is refused.

    Args:
        status: of HTTP.
        message: what was expected, and what came.
    """

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status
        self.message = message


def of_tensorflow(error: tf.errors.OpError) -> RequestError:
    """Turn an error of TensorFlow into a `RequestError` with the line that says what is wrong."""
    return RequestError(STATUSES.get(error.error_code, 500), reason_of(error))
