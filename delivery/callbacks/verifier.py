"""Verifications of endpoints: a worker asks a receiver whether it agrees to callbacks, before the
first one and whenever it is requested. SQL module.

`cloudevents` is the handshake of CloudEvents' HTTP webhooks 1.0 (section 4): an OPTIONS request
that names the hub, whose answer allows it and may bound the rate. `challenge` is a signed POST with
a random value that the receiver returns; `mcp` is the same in the form of MCP Events. In the
same way a receiver is notified that its subscription of MCP has ended. The statements are in
registrations/sql/endpoints.sql.
"""

import asyncio
import json
import time
from collections.abc import Sequence
from secrets import token_hex, token_urlsafe
from typing import NamedTuple

from delivery.callbacks.claims import CallbackEndpoint
from delivery.callbacks.client import CallbackResponse, HttpClient
from delivery.callbacks.guard import Origin
from delivery.callbacks.load import Loader
from delivery.callbacks.oauth2 import TokenUnavailable
from delivery.callbacks.post import CallbackTarget, error_text, outcome_of_error
from delivery.callbacks.post_with_token import with_token
from delivery.callbacks.recorded import recorded
from delivery.callbacks.signatures import sign
from delivery.callbacks.sink_store import SinkStore, SinkTarget
from delivery.callbacks.tokens import TokenSource
from delivery.mcp.errors import NOT_FOUND
from eventhub.base import limits, metrics
from eventhub.postgresql.connections import Connection, wait_for_notify
from eventhub.postgresql.rows import fetch_all
from registrations.endpoints import statements
from registrations.endpoints.statements import Handshake, VerificationResult
from registrations.sinks.kind import SinkFault

_QUOTED_CHARS_MAX = 200  # of an answer in a result


class ChallengeForm(NamedTuple):
    """The `type` of a challenge, and what its `webhook-id` begins with."""

    type: str
    message: str


CHALLENGES: dict[Handshake, ChallengeForm] = {
    "challenge": ChallengeForm("endpoint.challenge", "vrf_"),
    "mcp": ChallengeForm("verification", "msg_verification_"),
}


# the control envelope of MCP Events: to the receiver, the subscription is not there any more
TERMINATED = json.dumps(
    {
        "type": "terminated",
        "error": {
            "code": NOT_FOUND,
            "message": "The subscription was deleted, or its stream was.",
            "data": {"kind": "subscription"},
        },
    }
).encode()


class _Claimed(NamedTuple):
    """A verification claimed by this worker; `number` is that of its request. `farewell`: the
    `webhook-id` of the notice that a subscription has ended, which takes its place.
    """

    number: int
    farewell: str | None
    endpoint: CallbackEndpoint


class EndpointVerifier:
    """The verifications of one worker. `sender`: the hub's name in the CloudEvents handshake."""

    def __init__(
        self,
        client: HttpClient,
        tokens: TokenSource,
        loader: Loader,
        sinks: SinkStore,
        sender: str,
    ) -> None:
        self._client = client
        self._sinks = sinks
        self._tokens = tokens
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
                for claimed, target in await self._claim(connection, len(asking)):
                    asking[asyncio.create_task(self._ask(target, claimed))] = claimed
                for task in await _ended(connection, asking):
                    await _end(connection, asking.pop(task), task.result())
        finally:
            for task in asking:
                task.cancel()

    async def _claim(
        self, connection: Connection, under_way: int
    ) -> list[tuple[_Claimed, CallbackTarget]]:
        if under_way >= limits.VERIFICATIONS_MAX:
            return []
        bounds = {
            "per_client_max": limits.VERIFICATIONS_PER_CLIENT_MAX,
            "verifications_max": limits.VERIFICATIONS_MAX - under_way,
            "claim_s": limits.VERIFICATION_CLAIM_S,
        }
        statement = statements.SQL["claim_verifications"]
        found = await fetch_all(connection, _Claimed, statement, bounds)
        targets = await self._loader.targets(connection, [each.endpoint for each in found])
        return [(each, targets[each.endpoint.id]) for each in found]

    async def _ask(self, target: CallbackTarget, claimed: _Claimed) -> VerificationResult:
        """Return what the receiver answers; never raises."""
        if target.sink is not None:
            return await self._check(target, target.sink)
        origin = target.origin
        if origin is None:
            return VerificationResult("internal", None, target.fault)
        try:
            if target.oauth2 is not None:
                target = with_token(target, await self._tokens.token(target.oauth2))
            if claimed.farewell is not None:
                request = signed_post(target, claimed.farewell, TERMINATED)
                return farewell_result(await self._client.send(origin, request))
            handshake = claimed.endpoint.handshake
            if handshake == "cloudevents":
                return await self._handshake(target, origin)
            return await self._challenge(target, origin, CHALLENGES[handshake])
        except TokenUnavailable as error:
            return VerificationResult("token_unavailable", None, str(error))
        except Exception as error:
            detail = error_text(error, target.secrets)
            return VerificationResult(outcome_of_error(error), None, detail)

    async def _check(self, target: CallbackTarget, sink: SinkTarget) -> VerificationResult:
        """Return whether everything is there that storing events needs."""
        try:
            return VerificationResult("verified", None, await self._sinks.check(sink))
        except SinkFault as fault:
            detail = recorded(fault.detail[: limits.CALLBACK_ANSWER_CHARS_STORED_MAX],
                              target.secrets)  # fmt: skip
            return VerificationResult(fault.code, fault.status, detail)
        except Exception as error:
            return VerificationResult(outcome_of_error(error), None, type(error).__name__)

    async def _handshake(self, target: CallbackTarget, origin: Origin) -> VerificationResult:
        response = await self._client.send(origin, handshake_request(target))
        return handshake_result(response, self._sender, target.secrets)

    async def _challenge(
        self, target: CallbackTarget, origin: Origin, form: ChallengeForm
    ) -> VerificationResult:
        value = token_urlsafe(24)
        response = await self._client.send(origin, challenge_request(target, value, form))
        return challenge_result(response, value, target.secrets)


async def _end(connection: Connection, claimed: _Claimed, result: VerificationResult) -> None:
    """Write the result of a verification, or of a farewell."""
    id, number = claimed.endpoint.id, claimed.number
    if claimed.farewell is None:
        await statements.end_verification(connection, id, number, result)
    else:
        delivered = result.outcome == "verified"
        metrics.MCP_FAREWELLS.labels("delivered" if delivered else result.outcome).inc()
        await statements.end_farewell(connection, id, number, delivered=delivered)


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
    own = f"webhook-request-rate: {rate}\r\ncontent-length: 0\r\n"
    return f"{head}{own}{target.headers}\r\n".encode()


def handshake_result(
    response: CallbackResponse, sender: str, secrets: Sequence[str]
) -> VerificationResult:
    """Return what the answer to the OPTIONS request means. By the specification its status is no
    consent, so only the headers count; an error status refuses all the same. The result quotes the
    answer without the secrets.
    """
    refused = _refusal(response)
    if refused is not None:
        return refused
    origin = (response.header("webhook-allowed-origin") or "").strip()
    if origin != "*" and origin.lower() != sender.lower():
        said = f"it is {_quoted(origin, secrets)}" if origin else "it is missing"
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
            f" minute, at least 1; it is {_quoted(rate, secrets)}.",
        )
    bound = int(rate) if int(rate) < limits.VERIFICATION_RATE_MAX else None
    return VerificationResult("verified", response.status, "", bound)


def challenge_request(target: CallbackTarget, value: str, form: ChallengeForm) -> bytes:
    """Return the POST request with a value to return, signed like a callback."""
    body = json.dumps({"type": form.type, "challenge": value}).encode()
    return signed_post(target, f"{form.message}{token_hex(16)}", body)


def farewell_result(response: CallbackResponse) -> VerificationResult:
    """Return whether a receiver need not be notified again that its subscription has ended."""
    if response.status in (410, 413):  # by MCP Events, not to be repeated
        return VerificationResult("verified", response.status)
    return _refusal(response) or VerificationResult("verified", response.status)


def signed_post(target: CallbackTarget, message: str, body: bytes) -> bytes:
    """Return a POST request with a JSON body, signed like a callback."""
    timestamp_s = int(time.time())
    signature = sign(target.signers, message, timestamp_s, body)
    head = (
        f"{target.head}content-type: application/json\r\ncontent-length: {len(body)}\r\n"
        f"webhook-id: {message}\r\nwebhook-timestamp: {timestamp_s}\r\n"
        f"{target.headers}webhook-signature: {signature}\r\n\r\n"
    )
    return head.encode() + body


def challenge_result(
    response: CallbackResponse, value: str, secrets: Sequence[str]
) -> VerificationResult:
    """Return whether the answer has the value: as JSON in `challenge`, or as its whole body. The
    result quotes the answer without the secrets.
    """
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
    said = f"it is {_quoted(text, secrets)}" if text else "it is empty"
    return _refused(
        response,
        f'The body of the answer must be the challenge, or {{"challenge": …}} with it; {said}.',
    )


def _refusal(response: CallbackResponse) -> VerificationResult | None:
    if 200 <= response.status < 300:
        return None
    return _refused(response, f"The answer must have a 2xx status; it has {response.status}.")


def _refused(response: CallbackResponse, detail: str) -> VerificationResult:
    return VerificationResult("refused", response.status, detail)


def _quoted(text: str, secrets: Sequence[str]) -> str:
    return repr(recorded(text[:_QUOTED_CHARS_MAX], secrets))
