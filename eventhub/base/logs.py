"""Structured logs: one configuration for every process, as text lines or as JSON. Plain module.

A field never holds a secret.
"""

import logging
import sys
import time
from collections.abc import Callable
from typing import Any

from eventhub.base import caller, limits

# structlog loads rich where it is installed, a twentieth of each start, and the hub never uses it
sys.modules.setdefault("rich", None)  # type: ignore[arg-type]
import structlog  # noqa: E402
from structlog.types import EventDict, Processor  # noqa: E402

if sys.modules["rich"] is None:
    del sys.modules["rich"]

HANDSHAKE_REFUSED = "ASGI callable returned without completing handshake."
LINE_CHARS_MAX = 300
_CONNECTING = ("psycopg.pool", "celery.worker.consumer", "celery.beat", "kombu")


def _without_client_errors(record: logging.LogRecord) -> bool:
    """Filter what any client can cause, which is no error of the hub. A request that Django refuses
    (a wrong Host) becomes one warning line; uvicorn's error for a refused websocket is dropped.
    """
    if record.name == "uvicorn.error" and record.msg == HANDSHAKE_REFUSED:
        return False
    if record.name.startswith("django.security.") and record.levelno > logging.WARNING:
        record.msg, record.args = record.getMessage()[:LINE_CHARS_MAX], None
        record.exc_info = record.exc_text = None
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        return logging.getLogger().isEnabledFor(logging.WARNING)
    return True


class _Throttle:
    """Suppresses repeats of a key within LOG_REPEAT_S."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        self._clock_s = clock_s
        self._logged: dict[str, tuple[float, int]] = {}  # when, and how many were suppressed since

    def suppressed(self, key: str) -> int | None:
        """Return None to suppress the key now, else how many were suppressed since the last one."""
        now_s = self._clock_s()
        logged_s, count = self._logged.get(key, (-limits.LOG_REPEAT_S, 0))
        if now_s - logged_s < limits.LOG_REPEAT_S:
            self._logged[key] = logged_s, count + 1
            return None
        self._logged[key] = now_s, 0
        return count


class ThrottledLog:
    """A logger for failures that repeat during an outage: each event once in LOG_REPEAT_S, with the
    number suppressed since.
    """

    def __init__(
        self, log: structlog.stdlib.BoundLogger, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._log = log
        self._throttle = _Throttle(clock_s)

    def info(self, event: str, **fields: Any) -> None:
        self._write(self._log.info, event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        self._write(self._log.warning, event, fields)

    def _write(self, write: Callable[..., Any], event: str, fields: dict[str, Any]) -> None:
        suppressed = self._throttle.suppressed(event)
        if suppressed is not None:
            write(event, **fields, **({"suppressed": suppressed} if suppressed else {}))


class _ThrottledLibraries(logging.Filter):
    """Throttles the warnings that libraries log at each attempt to connect."""

    def __init__(self) -> None:
        super().__init__()
        self._throttle = _Throttle(time.monotonic)

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING or not record.name.startswith(_CONNECTING):
            return True
        return self._throttle.suppressed(f"{record.name} {str(record.msg)[:40]}") is not None


def _with_request_id(logger: Any, method: str, fields: EventDict) -> EventDict:
    """Add the id of the present request, if there is one."""
    if request_id := caller.current().request_id:
        fields.setdefault("request_id", request_id)
    return fields


def configure(log_format: str, level: str) -> None:
    """Send structlog and the standard library's loggers to stderr, as `text` or `json`."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        _with_request_id,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    last: Processor = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    if log_format == "json":
        last = structlog.processors.JSONRenderer()
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_without_client_errors)
    handler.addFilter(_ThrottledLibraries())
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
