"""Structured logs: one configuration for every process, as readable lines or as JSON.

No secret is ever a field.
"""

import logging
import sys

import structlog
from structlog.types import Processor

HANDSHAKE_REFUSED = "ASGI callable returned without completing handshake."
LINE_CHARS_MAX = 300


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
