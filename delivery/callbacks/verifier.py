"""Verifications of endpoints: a worker asks a receiver whether it agrees to callbacks, before the
first one and whenever it is requested. SQL module.

`cloudevents` is the handshake of CloudEvents' HTTP webhooks 1.0 (section 4): an OPTIONS request
that names the hub, whose answer allows it and may bound the rate. `challenge` is a signed POST with
a random value that the receiver returns. The statements are in registrations/sql/endpoints.sql.
"""

import asyncio
import json
import secrets
import time
from typing import NamedTuple

from delivery.callbacks.claims import CallbackEndpoint
from delivery.callbacks.client import CallbackResponse, HttpClient
from delivery.callbacks.load import Loader
from delivery.callbacks.post import CallbackTarget, error_text, outcome_of_error, sign
from eventhub.base import limits
from eventhub.postgresql.connections import Connection, wait_for_notify
from eventhub.postgresql.rows import fetch_all
from registrations.endpoints import statements
from registrations.endpoints.statements import VerificationResult

_NAMED = 200  # characters of an answer in a result


class _Claimed(NamedTuple):
    """A verification claimed by this worker; `number` is that of its request."""

    number: int
    endpoint: CallbackEndpoint


class EndpointVerifier:
    """The verifications of one worker. `sender`: the hub's name in the CloudEvents handshake."""

    def __init__(self, client: HttpClient, loader: Loader, sender: str) -> None:
        self._client = client
        self._loader = loader
        self._sender = sender

    async def run(self, connection: Connection) -> None:
        """Claim and perform verifications until cancelled. Needs a connection of its own that can
        LISTEN. Raises psycopg's errors.
        """
        await connection.execute(f"LISTEN {statements.VERIFICATIONS}")
        asking: dict[asyncio.Task[VerificationResult], _Claimed] = {}
        try:
            while True:
                for claimed in await self._claim(connection, len(asking)):
                    asking[asyncio.create_task(self._ask(claimed.endpoint))] = claimed
                for task in await _ended(connection, asking):
                    endpoint_id, number = asking[task].endpoint.id, asking.pop(task).number
                    result = task.result()
                    await statements.end_verification(connection, endpoint_id, number, result)
        finally:
            for task in asking:
                task.cancel()

    async def _claim(self, connection: Connection, under_way: int) -> list[_Claimed]:
        if under_way >= limits.VERIFICATIONS_MAX:
            return []
        bounds = {
            "per_client_max": limits.VERIFICATIONS_PER_CLIENT_MAX,
            "verifications_max": limits.VERIFICATIONS_MAX - under_way,
            "claim_s": limits.VERIFICATION_CLAIM_S,
        }
        return await fetch_all(connection, _Claimed, statements.SQL["claim_verifications"], bounds)

    async def _ask(self, endpoint: CallbackEndpoint) -> VerificationResult:
        """Return what the receiver answers; never raises."""
        target = self._loader.target(endpoint)
        if target.origin is None:
            return VerificationResult("internal", None, target.fault)
        value = secrets.token_urlsafe(24)
        try:
            if endpoint.handshake == "cloudevents":
                request = handshake_request(target)
                return handshake_result(await self._send(target, request), self._sender)
            request = challenge_request(target, endpoint.id, value)
            return challenge_result(await self._send(target, request), value)
        except Exception as error:
            return VerificationResult(outcome_of_error(error), None, error_text(error))

    async def _send(self, target: CallbackTarget, request: bytes) -> CallbackResponse:
        assert target.origin is not None  # noqa: S101 - checked by the caller
        return await self._client.post(target.origin, request)


async def _ended(
    connection: Connection, asking: dict[asyncio.Task[VerificationResult], _Claimed]
) -> list[asyncio.Task[VerificationResult]]:
    """Wait for an answer, for a request, or for the next search; return those that answered."""
    notified = asyncio.create_task(wait_for_notify(connection, limits.VERIFICATION_SCAN_S))
    try:
        await asyncio.wait({notified, *asking}, return_when=asyncio.FIRST_COMPLETED)
        if notified.done():
            notified.result()  # raises when the connection broke
    finally:
        notified.cancel()
    return [task for task in asking if task.done()]


def handshake_request(target: CallbackTarget) -> bytes:
    """Return the OPTIONS request; the target's head already names the hub."""
    head = target.head.replace("POST ", "OPTIONS ", 1)
    rate = limits.VERIFICATION_RATE_REQUESTED
    return f"{head}webhook-request-rate: {rate}\r\ncontent-length: 0\r\n\r\n".encode()


def handshake_result(response: CallbackResponse, sender: str) -> VerificationResult:
    """Return what the answer to the OPTIONS request means. By the specification its status is no
    consent, so only the headers count; an error status refuses all the same.
    """
    refused = _refusal(response)
    if refused is not None:
        return refused
    origin = (response.header("webhook-allowed-origin") or "").strip()
    if origin != "*" and origin.lower() != sender.lower():
        said = f"it is {origin[:_NAMED]!r}" if origin else "it is missing"
        return _refused(
            response,
            f"The header WebHook-Allowed-Origin of the answer must be {sender!r} or '*'; {said}.",
        )
    rate = (response.header("webhook-allowed-rate") or "*").strip()
    if rate == "*":
        return VerificationResult("verified", response.status)
    if not (rate.isascii() and rate.isdigit() and len(rate) < 20 and int(rate)):
        return _refused(
            response,
            "The header WebHook-Allowed-Rate of the answer must be '*' or a number of requests per"
            f" minute, at least 1; it is {rate[:_NAMED]!r}.",
        )
    bound = int(rate) if int(rate) < limits.VERIFICATION_RATE_MAX else None
    return VerificationResult("verified", response.status, "", bound)


def challenge_request(target: CallbackTarget, endpoint_id: int, value: str) -> bytes:
    """Return the POST request with a value to return, signed like a callback."""
    content = {"type": "endpoint.challenge", "endpoint": endpoint_id, "challenge": value}
    body = json.dumps(content, separators=(",", ":")).encode()
    message, timestamp_s = f"vrf_{secrets.token_hex(16)}", int(time.time())
    signature = sign(target.secret, message, timestamp_s, body)
    head = (
        f"{target.head}content-type: application/json\r\ncontent-length: {len(body)}\r\n"
        f"webhook-id: {message}\r\nwebhook-timestamp: {timestamp_s}\r\n"
        f"webhook-signature: {signature}\r\n\r\n"
    )
    return head.encode() + body


def challenge_result(response: CallbackResponse, value: str) -> VerificationResult:
    """Return whether the answer has the value: as JSON in `challenge`, or as its whole body."""
    refused = _refusal(response)
    if refused is not None:
        return refused
    text = response.body.decode("utf-8", "replace").strip()
    try:
        found = json.loads(text)
        given = found.get("challenge") if isinstance(found, dict) else found
    except (ValueError, RecursionError):
        given = text
    if given == value:
        return VerificationResult("verified", response.status)
    said = f"it is {text[:_NAMED]!r}" if text else "it is empty"
    return _refused(
        response,
        f'The body of the answer must be the challenge, or {{"challenge": …}} with it; {said}.',
    )


def _refusal(response: CallbackResponse) -> VerificationResult | None:
    if 200 <= response.status < 300:
        return None
    return _refused(response, f"The answer must have a 2xx status; it has {response.status}.")


def _refused(response: CallbackResponse, detail: str) -> VerificationResult:
    return VerificationResult("refused", response.status, detail.replace("\0", "�"))
