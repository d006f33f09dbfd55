"""One attempt to post a delivery: always returns an outcome, never raises, and takes a bounded
time. Plain module.
"""

import socket
import ssl
import time
from collections.abc import Sequence
from typing import NamedTuple

from yarl import URL

from delivery.callbacks.batches import BatchSize
from delivery.callbacks.body import RequestContent
from delivery.callbacks.client import CallbackResponse, HttpClient, MalformedResponse
from delivery.callbacks.guard import AddressRefused, Origin
from delivery.callbacks.recorded import recorded
from delivery.callbacks.results import AttemptRecord
from delivery.callbacks.retry import AttemptOutcome, outcome_of_status
from delivery.callbacks.signatures import Signer, sign
from delivery.callbacks.sink_store import SinkTarget
from delivery.callbacks.token_request import TokenRequest
from eventhub.base import limits
from eventhub.base.logs import get_logger
from registrations.endpoints.retry_after import read_retry_after

log = get_logger(__name__)
USER_AGENT = "EventHub"


class CallbackTarget(NamedTuple):
    """An endpoint as it is called. Without an `origin`, `fault` says why the endpoint cannot be
    called. `head` starts every request. `headers` are whole lines that are sent and not recorded;
    `secrets` are texts that are removed from what is recorded of a response. `batch`: None unless
    events are posted in batches.
    """

    url: str
    origin: Origin | None
    path: str
    head: str
    signers: Sequence[Signer]
    fault: str = ""
    headers: str = ""
    secrets: Sequence[str] = ()
    oauth2: TokenRequest | None = None
    batch: BatchSize | None = None
    timeout_s: float | None = None  # of an attempt; None: the default
    sink: SinkTarget | None = None  # the events are stored there instead


class PostResult(NamedTuple):
    """The outcome of an attempt, the record that is stored of it, and the body of the answer; None
    if there is none, or it was cut or compressed.
    """

    outcome: AttemptOutcome
    attempt: AttemptRecord
    answer: bytes | None = None


def target_of(text: str, signers: Sequence[Signer], zone: str) -> CallbackTarget:
    """Return how to call a URL for an endpoint of a zone. Raises ValueError."""
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
    origin = Origin(host, port, url.scheme == "https", zone)
    return CallbackTarget(text, origin, url.raw_path_qs, head, signers)


async def post(
    client: HttpClient,
    target: CallbackTarget,
    message: str,
    content: RequestContent,
) -> PostResult:
    """Send a callback and return its outcome."""
    body, message = content.body, content.message or message
    if target.origin is None:
        return not_sent(target, "internal", target.fault)
    started_s = time.monotonic()
    timestamp_s = int(time.time())
    own = (
        f"{content.headers}content-length: {len(body)}\r\n"
        f"webhook-id: {message}\r\nwebhook-timestamp: {timestamp_s}\r\n"
    )
    signature = sign(target.signers, message, timestamp_s, body)
    head = f"{target.head}{own}{target.headers}webhook-signature: {signature}\r\n\r\n"
    request = head.encode() + body
    answer: bytes | None = None
    try:
        response = await client.send(
            target.origin, request, content.answer_bytes_max, target.timeout_s
        )
        outcome, response_text = _outcome_of(response), _response_text(response, target.secrets)
        if response.is_complete and not response.header("content-encoding"):
            answer = response.body
    except Exception as error:
        outcome = AttemptOutcome(outcome_of_error(error))
        response_text = error_text(error, target.secrets)
    ended_s = time.monotonic()
    return PostResult(
        outcome,
        AttemptRecord(
            outcome.code,
            outcome.status,
            started_s,
            int((ended_s - started_s) * 1_000),
            target.url,
            f"POST {target.path}\n{own}".replace("\r", "").rstrip(),
            response_text,
        ),
        answer,
    )


def not_sent(target: CallbackTarget, outcome: str, reason: str) -> PostResult:
    """Return the result of an attempt that was not sent."""
    attempt = AttemptRecord(outcome, None, time.monotonic(), 0, target.url, "", reason)
    return PostResult(AttemptOutcome(outcome), attempt)


def _outcome_of(response: CallbackResponse) -> AttemptOutcome:
    outcome = outcome_of_status(response.status)
    retry_after = None if outcome == "delivered" else response.header("retry-after")
    if retry_after is None:
        return AttemptOutcome(outcome, response.status)
    retry_after_s = read_retry_after(retry_after, time.time_ns() // 1_000)
    return AttemptOutcome(outcome, response.status, retry_after_s)


def _response_text(response: CallbackResponse, secrets: Sequence[str]) -> str:
    """Return status, headers and the start of the body, as they are recorded."""
    lines = [f"{response.status} {response.reason}".rstrip()]
    lines += [f"{name}: {value}" for name, value in response.headers]
    text = recorded("\n".join(lines)[: limits.CALLBACK_ANSWER_CHARS_STORED_MAX], secrets)
    if response.body:
        body = response.body[: limits.CALLBACK_ANSWER_CHARS_STORED_MAX]
        text += "\n\n" + recorded(body.decode("utf-8", "replace"), secrets)
    return text


_OUTCOMES: tuple[tuple[type[Exception], str], ...] = (
    (TimeoutError, "timeout"),
    (AddressRefused, "refused_address"),
    (socket.gaierror, "unknown_host"),
    (UnicodeError, "unknown_host"),
    (ssl.SSLError, "tls"),
    (MalformedResponse, "protocol"),
    (OSError, "connection"),
)


def outcome_of_error(error: Exception) -> str:
    """Return the outcome without a response. The hub's own errors are logged and retried."""
    for kind, outcome in _OUTCOMES:
        if isinstance(error, kind):
            return outcome
    log.error("callback_failed", exc_info=error)
    return "internal"


def error_text(error: Exception, secrets: Sequence[str]) -> str:
    """Return what is recorded of an error."""
    unnamed = "no response in time" if isinstance(error, TimeoutError) else type(error).__name__
    text = str(error) or unnamed
    return recorded(text[: limits.CALLBACK_ANSWER_CHARS_STORED_MAX], secrets)


def message_id(segment: str, sequence: int, endpoint_id: int) -> str:
    """Return the id of a delivery, the same for every attempt:
    `msg_<segment>_<sequence>_<endpoint>`.

    `segment` is a UUID in any form.
    """
    return message_format(segment, endpoint_id).format(sequence)


def message_format(segment: str, endpoint_id: int) -> str:
    """Return the ids of deliveries, with `{}` in place of the sequence."""
    return f"msg_{segment.replace('-', '')}_{{}}_{endpoint_id}"
