"""Posts one delivery and says how it ended: no exception, and no longer than its time. aiohttp, no
database.
"""

import asyncio
import ssl
import time
from typing import NamedTuple

import aiohttp
from multidict import CIMultiDictProxy
from yarl import URL

from delivery.callbacks.guard import AddressRefused, calling
from delivery.callbacks.results import Attempt
from delivery.callbacks.retry import Tried, outcome_of_status, read_retry_after
from delivery.callbacks.signature import sign
from eventhub import limits
from eventhub.logs import get_logger

log = get_logger(__name__)
USER_AGENT = "EventHub"


class Target(NamedTuple):
    """An endpoint as it is called. `secret` is the key of the signature itself; without a `url`,
    `fault` says why it cannot be called.
    """

    url: URL | None
    text: str
    secret: bytes
    fault: str = ""


class Ended(NamedTuple):
    """A try: what follows from it, and what is kept of it."""

    tried: Tried
    attempt: Attempt


async def post(session: aiohttp.ClientSession, target: Target, message: str, body: bytes) -> Ended:
    """Send a callback and take the answer."""
    if target.url is None:
        return not_sent(target, "internal", target.fault)
    began_s = time.monotonic()
    timestamp_s = int(time.time())
    calling.set((target.url.raw_host or "", target.url.port or 0))
    headers = {
        "content-type": "application/json",
        "user-agent": USER_AGENT,
        "webhook-id": message,
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": sign(target.secret, message, timestamp_s, body),
    }
    try:
        async with session.post(
            target.url, data=body, headers=headers, allow_redirects=False
        ) as answer:
            text = await _read(answer)
            tried = Tried(outcome_of_status(answer.status), answer.status)
            if tried.outcome != "delivered":
                tried = tried._replace(retry_after_s=_retry_after(answer))
            response = _shown(answer, text)
    except Exception as error:
        tried = Tried(_outcome(error))
        response = _words(error)
    request = (
        f"POST {target.url.raw_path_qs}\ncontent-length: {len(body)}\nwebhook-id: {message}\n"
        f"webhook-timestamp: {timestamp_s}"
    )
    duration_ms = int((time.monotonic() - began_s) * 1_000)
    return Ended(
        tried,
        Attempt(tried.outcome, tried.status, began_s, duration_ms, target.text, request, response),
    )


def not_sent(target: Target, outcome: str, why: str) -> Ended:
    """A try that ended before it began."""
    attempt = Attempt(outcome, None, time.monotonic(), 0, target.text, "", why)
    return Ended(Tried(outcome), attempt)


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    """The answer's body up to a bound; behind it the connection is closed.

    The status has said how the try ended, so a body that breaks off or never ends changes nothing.
    """
    found = b""
    try:
        while not answer.content.at_eof():
            found += await answer.content.read(limits.CALLBACK_ANSWER_BYTES_READ_MAX)
            if len(found) >= limits.CALLBACK_ANSWER_BYTES_READ_MAX:
                answer.close()
                break
    except (aiohttp.ClientError, TimeoutError):
        answer.close()
    return found


def _retry_after(answer: aiohttp.ClientResponse) -> float | None:
    text = answer.headers.get("Retry-After")
    return None if text is None else read_retry_after(text, time.time_ns() // 1_000)


def _shown(answer: aiohttp.ClientResponse, body: bytes) -> str:
    """Status, headers and the beginning of the body, as text that PostgreSQL can hold."""
    kept = limits.CALLBACK_ANSWER_CHARS_KEPT_MAX
    head = f"{answer.status} {answer.reason or ''}".rstrip() + _lines(answer.headers)
    text = head[:kept]
    if body:
        text += "\n\n" + body[:kept].decode("utf-8", "replace")
    return _storable(text)


def _lines(headers: CIMultiDictProxy[str]) -> str:
    return "".join([f"\n{name}: {value}" for name, value in headers.items()])


def _storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode().replace("\0", "�")


def _outcome(error: Exception) -> str:
    """The word for a failure to get any answer. Our own are logged, and tried again like others."""
    if isinstance(error, asyncio.TimeoutError):
        return "timeout"
    cause = getattr(error, "os_error", None)
    if isinstance(cause, AddressRefused):
        return "refused_address"
    for kind, outcome in _OUTCOMES:
        if isinstance(error, kind):
            return outcome
    log.error("callback_failed", exc_info=error)
    return "internal"


_OUTCOMES: tuple[tuple[type[Exception], str], ...] = (
    (aiohttp.ClientConnectorDNSError, "unknown_host"),
    (aiohttp.ClientConnectorCertificateError, "tls"),
    (aiohttp.ClientConnectorSSLError, "tls"),
    (ssl.SSLError, "tls"),
    (aiohttp.ClientConnectionError, "connection"),
    (aiohttp.ClientError, "protocol"),
    (UnicodeError, "unknown_host"),
    (OSError, "connection"),
)


def _words(error: Exception) -> str:
    cause = getattr(error, "os_error", None) or error
    text = str(cause) or type(cause).__name__
    return _storable(text[: limits.CALLBACK_ANSWER_CHARS_KEPT_MAX])
