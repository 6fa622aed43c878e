"""A log of one JSON object a line on standard error. It never holds a text that a user sent."""

import datetime
import json
import logging
import sys
from typing import TextIO

LOGGER = logging.getLogger("keras_transformer.server")


class JsonLines(logging.Formatter):
    """Format a record as one object: its time, level, event and details."""

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.datetime.fromtimestamp(record.created, datetime.UTC).isoformat(
            timespec="milliseconds"
        )
        told = {
            "time": when,
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "details", {}),
        }
        if record.exc_info:
            # Only the error's type and place: its message may quote a request.
            kind, _, trace = record.exc_info
            while trace.tb_next:
                trace = trace.tb_next
            told["error"] = (
                f"{kind.__name__} at {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
            )
        return json.dumps(told)


def start(stream: TextIO | None = None) -> None:
    """Log what the server and its web server say, to a stream; by default standard error."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    for name, level in ((LOGGER.name, logging.INFO), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level)


def tell(event: str, level: int = logging.INFO, exc_info=None, **details) -> None:
    """Log an event with its details, none of them a user's text."""
    LOGGER.log(level, event, exc_info=exc_info, extra={"details": details})
