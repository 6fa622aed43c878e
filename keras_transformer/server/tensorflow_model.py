"""A SavedModel for the server: its errors become `RequestError`s, and the server's `Cancellation`
ends a run. This is the server's only module that needs TensorFlow.
"""

import typing

import numpy as np
import tensorflow as tf
from google.protobuf import json_format

from keras_transformer.saved_models.session import CancellationManager, SavedModel
from keras_transformer.server.batcher import Cancellation
from keras_transformer.server.options import RequestError
from keras_transformer.tensorflow_errors import reason_of

# TF Serving's `ToHTTPStatusCode`; any other error is the server's own fault (500).
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
    """A `SavedModel` with what the server reports of it: the Open Inference Protocol's name of its
    platform, and the reasons for `missing_signatures`, by name.
    """

    platform = "tensorflow_savedmodel"
    missing_signatures: typing.ClassVar[dict[str, str]] = {}

    @property
    def extras(self):
        """The folder of the files that lie beside the graph."""
        return self.folder / "assets.extra"

    @property
    def signature_defs(self) -> dict[str, dict]:
        """The signatures as TF Serving describes them."""
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
        # One for each run: a run that fails cancels its manager.
        manager = CancellationManager()
        if cancellation:
            cancellation.add_done_callback(lambda _: manager.start_cancel())
        try:
            return super().run(name, inputs, manager)
        except tf.errors.OpError as error:
            raise RequestError(reason_of(error), STATUSES.get(error.error_code, 500)) from error
