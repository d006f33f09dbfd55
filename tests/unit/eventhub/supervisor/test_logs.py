"""Log lines of a web process that any client can cause, and throttled ones."""

import inspect
import logging
from collections.abc import Iterator

import pytest
from django.test import Client
from uvicorn.protocols.websockets import websockets_sansio_impl

from eventhub.base import limits, logs
from eventhub.base.clock import ManualClock

both_formats = pytest.mark.parametrize("log_format", ["text", "json"])


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root = logging.getLogger()
    before = (root.handlers, root.level)
    yield
    root.handlers, root.level = before


@both_formats
@pytest.mark.parametrize("host", ["evil.example", "a b", "x" * 5_000])
def test_wrong_host_is_one_short_warning(
    log_format: str, host: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The log had an error with a traceback of a dozen lines, for each request."""
    logs.configure(log_format, "info")
    assert Client().get("/v1/clients", headers={"host": host}).status_code == 400
    (line,) = capsys.readouterr().err.splitlines()
    assert "warning" in line
    assert "error" not in line.lower().replace("errors", "")
    assert len(line) < 2 * logs.LINE_CHARS_MAX


def test_wrong_host_is_not_logged_at_level_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.configure("text", "error")
    Client().get("/v1/clients", headers={"host": "evil.example"})
    assert capsys.readouterr().err == ""


def test_refused_handshake_is_the_only_error_of_uvicorn_that_is_dropped(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.configure("text", "info")
    logger = logging.getLogger("uvicorn.error")
    logger.error(logs.HANDSHAKE_REFUSED)
    logger.error("Exception in ASGI application\n")
    output = capsys.readouterr().err
    assert "handshake" not in output
    assert "Exception in ASGI application" in output


def test_dropped_text_is_the_servers_own() -> None:
    """An update of uvicorn may change the text."""
    assert f'self.logger.error("{logs.HANDSHAKE_REFUSED}")' in inspect.getsource(
        websockets_sansio_impl
    )


def test_repeated_failures_are_logged_once_in_an_interval(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each event is throttled, with the number suppressed; so are the attempts of libraries."""
    logs.configure("text", "info")
    clock = ManualClock()
    throttled = logs.ThrottledLog(logs.get_logger("drain"), clock.monotonic_s)
    for _ in range(50):
        throttled.warning("away", reason="x")
        throttled.info("other")
        logging.getLogger("psycopg.pool").warning("error connecting in %r: %s", "read", "no")
    clock.advance_s(limits.LOG_REPEAT_S + 0.1)
    throttled.warning("away", reason="x")
    lines = capsys.readouterr().err.splitlines()
    counts = {word: sum(word in line for line in lines) for word in ("away", "other", "pool")}
    assert counts == {"away": 2, "other": 1, "pool": 1}
    assert "suppressed=49" in lines[-1]
