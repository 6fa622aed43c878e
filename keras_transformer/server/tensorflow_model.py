"""A SavedModel as the server asks models: its errors refuse a request, and the server's own
`Cancellation` ends a run. Of what the server imports this alone needs TensorFlow.
"""

import typing

import numpy as np
import tensorflow as tf
from google.protobuf import json_format

from keras_transformer.saved_models.session import CancellationManager, SavedModel
from keras_transformer.server.batcher import Cancellation
from keras_transformer.server.options import RequestError
from keras_transformer.tensorflow_errors import reason_of

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


class TensorFlowModel(SavedModel):
    """A `SavedModel` with what the server wants to know of it: what the Open Inference Protocol
    calls its kind, and why it is `lacking` a signature of a name.
    """

    platform = "tensorflow_savedmodel"
    lacking: typing.ClassVar[dict[str, str]] = {}

    @property
    def extras(self):
        """The folder of what lies beside the graph."""
        return self.folder / "assets.extra"

    @property
    def described(self) -> dict[str, dict]:
        """Its signatures as TF Serving describes them."""
        return {
            name: json_format.MessageToDict(
                definition,
                preserving_proto_field_name=True,
                always_print_fields_with_no_presence=True,
            )
            for name, definition in self.definitions.items()
        }

    def run(
        self, name: str, inputs: dict[str, np.ndarray], cancellation: Cancellation | None = None
    ) -> dict[str, np.ndarray]:
        # A run that fails cancels TensorFlow's own: it is of one run.
        manager = CancellationManager()
        if cancellation:
            cancellation.add_done_callback(lambda _: manager.start_cancel())
        try:
            return super().run(name, inputs, manager)
        except tf.errors.OpError as error:
            raise RequestError(reason_of(error), STATUSES.get(error.error_code, 500)) from error
