"""Structured logs: one configuration for every process, as readable lines or as JSON. Plain module.

No secret is ever a field.
"""

import logging
import sys
import time
from collections.abc import Callable
from typing import Any

import structlog
from structlog.types import Processor

from eventhub.base import limits

HANDSHAKE_REFUSED = "ASGI callable returned without completing handshake."
LINE_CHARS_MAX = 300
_CONNECTING = ("psycopg.pool", "celery.worker.consumer", "celery.beat", "kombu")


def _strangers(record: logging.LogRecord) -> bool:
    """A filter: what any stranger can cause is no error of ours. Requests that Django refuses (a
    wrong Host) become one warning line; uvicorn's word for a refused websocket is dropped."""
    if record.name == "uvicorn.error" and record.msg == HANDSHAKE_REFUSED:
        return False
    if record.name.startswith("django.security.") and record.levelno > logging.WARNING:
        record.msg, record.args = record.getMessage()[:LINE_CHARS_MAX], None
        record.exc_info = record.exc_text = None
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        return logging.getLogger().isEnabledFor(logging.WARNING)
    return True


class _Repeats:
    """What was said a moment ago, by a key: those who try again all the time say so once."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        self._clock_s = clock_s
        self._said: dict[str, tuple[float, int]] = {}

    def left_out(self, key: str) -> int | None:
        """None if it is to be left out now; else how many were, since it was said."""
        now_s = self._clock_s()
        said_s, count = self._said.get(key, (-limits.LOG_REPEAT_S, 0))
        if now_s - said_s < limits.LOG_REPEAT_S:
            self._said[key] = said_s, count + 1
            return None
        self._said[key] = now_s, 0
        return count


class Seldom:
    """A logger for what repeats while something is away: each event once in LOG_REPEAT_S, with the
    number of those left out since.
    """

    def __init__(
        self, log: structlog.stdlib.BoundLogger, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._log = log
        self._repeats = _Repeats(clock_s)

    def info(self, event: str, **fields: Any) -> None:
        self._say(self._log.info, event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        self._say(self._log.warning, event, fields)

    def _say(self, say: Callable[..., Any], event: str, fields: dict[str, Any]) -> None:
        left_out = self._repeats.left_out(event)
        if left_out is not None:
            say(event, **fields, **({"left_out": left_out} if left_out else {}))


class _Libraries(logging.Filter):
    """What the libraries of connections say at each of their attempts."""

    def __init__(self) -> None:
        super().__init__()
        self._repeats = _Repeats(time.monotonic)

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING or not record.name.startswith(_CONNECTING):
            return True
        return self._repeats.left_out(f"{record.name} {str(record.msg)[:40]}") is not None


def configure(log_format: str, level: str) -> None:
    """Send structlog and the standard library's loggers to stderr, as `text` or `json`."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    last: Processor = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    if log_format == "json":
        last = structlog.processors.JSONRenderer()
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_strangers)
    handler.addFilter(_Libraries())
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, last],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    logger: structlog.stdlib.BoundLogger = structlog.get_logger(name)
    return logger
