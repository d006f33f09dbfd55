"""Posts one delivery and says how it ended: no exception, and no longer than its time.
Plain module.
"""

import socket
import ssl
import time
from typing import NamedTuple

from yarl import URL

from delivery.callbacks.body import Content
from delivery.callbacks.client import Answer, Client, NoHttp
from delivery.callbacks.guard import AddressRefused, Place
from delivery.callbacks.results import Attempt
from delivery.callbacks.retry import Tried, outcome_of_status, read_retry_after
from delivery.callbacks.signature import sign
from eventhub.base import limits
from eventhub.base.logs import get_logger

log = get_logger(__name__)
USER_AGENT = "EventHub"


class Target(NamedTuple):
    """An endpoint as it is called. `secret` is the key of the signature itself; without a `place`,
    `fault` says why it cannot be called. `head` begins every request.
    """

    url: str
    place: Place | None
    path: str
    head: str
    secret: bytes
    fault: str = ""


class Ended(NamedTuple):
    """A try: what follows from it, and what is kept of it."""

    tried: Tried
    attempt: Attempt


def target_of(text: str, secret: bytes) -> Target:
    """How a URL is called. Raises ValueError."""
    url = URL(text)
    host, port = url.raw_host, url.port
    if url.scheme not in ("http", "https") or not host or port is None:
        raise ValueError("not an http or https URL")
    name = f"[{host}]" if ":" in host else host
    head = (
        f"POST {url.raw_path_qs} HTTP/1.1\r\n"
        f"host: {name if url.is_default_port() else f'{name}:{port}'}\r\n"
        f"user-agent: {USER_AGENT}\r\naccept: */*\r\n"
    )
    return Target(text, Place(host, port, url.scheme == "https"), url.raw_path_qs, head, secret)


async def post(client: Client, target: Target, message: str, content: Content) -> Ended:
    """Send a callback and take the answer."""
    body = content.body
    if target.place is None:
        return not_sent(target, "internal", target.fault)
    began_s = time.monotonic()
    timestamp_s = int(time.time())
    own = (
        f"{content.headers}content-length: {len(body)}\r\n"
        f"webhook-id: {message}\r\nwebhook-timestamp: {timestamp_s}\r\n"
    )
    signature = sign(target.secret, message, timestamp_s, body)
    head = f"{target.head}{own}webhook-signature: {signature}\r\n\r\n"
    request = head.encode() + body
    try:
        answer = await client.post(target.place, request)
        tried, response = _tried(answer), _shown(answer)
    except Exception as error:
        tried, response = Tried(_outcome(error)), _words(error)
    ended_s = time.monotonic()
    return Ended(
        tried,
        Attempt(
            tried.outcome,
            tried.status,
            began_s,
            int((ended_s - began_s) * 1_000),
            target.url,
            f"POST {target.path}\n{own}".replace("\r", "").rstrip(),
            response,
        ),
    )


def not_sent(target: Target, outcome: str, why: str) -> Ended:
    """A try that ended before it began."""
    attempt = Attempt(outcome, None, time.monotonic(), 0, target.url, "", why)
    return Ended(Tried(outcome), attempt)


def _tried(answer: Answer) -> Tried:
    outcome = outcome_of_status(answer.status)
    asked = None if outcome == "delivered" else answer.header("retry-after")
    if asked is None:
        return Tried(outcome, answer.status)
    retry_after_s = read_retry_after(asked, time.time_ns() // 1_000)
    return Tried(outcome, answer.status, retry_after_s)


def _shown(answer: Answer) -> str:
    """Status, headers and the beginning of the body, as text that PostgreSQL can hold."""
    lines = [f"{answer.status} {answer.reason}".rstrip()]
    lines += [f"{name}: {value}" for name, value in answer.headers]
    text = "\n".join(lines)[: limits.CALLBACK_ANSWER_CHARS_STORED_MAX]
    if answer.body:
        text += "\n\n" + answer.body.decode("utf-8", "replace")
    return _storable(text)


def _storable(text: str) -> str:
    return text.replace("\0", "�")


_OUTCOMES: tuple[tuple[type[Exception], str], ...] = (
    (TimeoutError, "timeout"),
    (AddressRefused, "refused_address"),
    (socket.gaierror, "unknown_host"),
    (UnicodeError, "unknown_host"),
    (ssl.SSLError, "tls"),
    (NoHttp, "protocol"),
    (OSError, "connection"),
)


def _outcome(error: Exception) -> str:
    """The word for a failure to get any answer. Our own are logged, and tried again like others."""
    for kind, outcome in _OUTCOMES:
        if isinstance(error, kind):
            return outcome
    log.error("callback_failed", exc_info=error)
    return "internal"


def _words(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return _storable(text[: limits.CALLBACK_ANSWER_CHARS_STORED_MAX])
