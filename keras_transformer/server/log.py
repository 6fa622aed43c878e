"""A log of one JSON object a line on standard error. It never holds a text that a user sent."""

import datetime
import json
import logging
import sys

LOGGER = logging.getLogger("keras_transformer.server")


class JsonLines(logging.Formatter):
    """One object a record: when, how grave, what, and what was told of it."""

    def format(self, record):
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
            # Where, and of which kind: the message of an error may quote a request.
            kind, _, trace = record.exc_info
            while trace.tb_next:
                trace = trace.tb_next
            told["error"] = (
                f"{kind.__name__} at {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
            )
        return json.dumps(told)


def start(stream=None):
    """Write what the server and its web server log."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    for name, level in ((LOGGER.name, logging.INFO), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level)


def tell(event, level=logging.INFO, exc_info=None, **details):
    """Log an event with its details, none of them a user's text."""
    LOGGER.log(level, event, exc_info=exc_info, extra={"details": details})
