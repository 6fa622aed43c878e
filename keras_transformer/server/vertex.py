"""What Vertex AI says to a container of its own by variables of the environment: the port, and the
paths at which it asks for health and predictions.
"""

import dataclasses
import re
from collections.abc import Mapping

PORT = "AIP_HTTP_PORT"
HEALTH = "AIP_HEALTH_ROUTE"
PREDICT = "AIP_PREDICT_ROUTE"
PATH = r"/[A-Za-z0-9_.:/-]*"


@dataclasses.dataclass(frozen=True)
class Vertex:
    """The port and the two paths; None where Vertex AI does not say them."""

    port: int | None = None
    health: str | None = None
    predict: str | None = None

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Vertex":
        """Read the variables. Empty ones count as none."""
        port = environment.get(PORT) or None
        if port is not None and not (re.fullmatch("[0-9]{1,5}", port) and int(port) < 2**16):
            raise ValueError(f"{PORT} must be a port, 0 to 65535. Received: {port!r}.")
        paths = {name: environment.get(name) or None for name in (HEALTH, PREDICT)}
        for name, path in paths.items():
            if path is not None and not re.fullmatch(PATH, path):
                raise ValueError(
                    f"{name} must be a path of letters, digits and _ . : - such as /predict. "
                    f"Received: {path!r}."
                )
        return cls(None if port is None else int(port), *paths.values())
