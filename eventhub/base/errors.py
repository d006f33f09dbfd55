"""The errors that the hub answers with, in one tree: each has a code, an HTTP status, and a message
that says what to do. Plain module.

The docstring of a class is its default message. `problem()` is the only place where an error
becomes JSON (RFC 9457, `application/problem+json`); the hot routes, DRF and websockets use it.
"""

import re
from typing import Any

_WORD_BEGIN = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class EventHubError(Exception):
    """Something went wrong inside the hub; try again, and report it if it persists."""

    code = "internal"
    status = 500

    def __init_subclass__(cls) -> None:
        """Set the code, the class's name in snake case (`unknown_field`), unless it has its own."""
        if "code" not in vars(cls):
            cls.code = _WORD_BEGIN.sub("_", cls.__name__).lower()

    def __init__(
        self,
        message: str | None = None,
        *,
        index: int | None = None,
        field: str | None = None,
        retry_after_s: int | None = None,
        **details: Any,
    ) -> None:
        self.message = message or " ".join((type(self).__doc__ or "").split())
        self.index = index
        self.field = field
        self.retry_after_s = retry_after_s
        self.details = details
        super().__init__(self.message)

    @property
    def position(self) -> dict[str, Any]:
        """The position in the input, where known: `index` (0-based, in an array or NDJSON) and
        `field` (dotted path).
        """
        known = {"index": self.index, "field": self.field}
        return {name: value for name, value in known.items() if value is not None}

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """The headers of the answer that tell a client what to do, with lower-case names."""
        if self.retry_after_s is None:
            return []
        return [(b"retry-after", str(self.retry_after_s).encode())]

    def problem(self) -> dict[str, Any]:
        """Return the problem document: type, title, status, code, detail, position, `details`."""
        return {
            "type": f"/docs/errors#{self.code}",
            "title": self.code.replace("_", " "),
            "status": self.status,
            "code": self.code,
            "detail": self.message,
            "position": self.position,
            **self.details,
        }


# --- errors of the caller ---


class BadRequest(EventHubError):
    """The request is invalid; see `position`."""

    status = 400


class MalformedJson(BadRequest):
    """The body is not JSON in UTF-8; check for a missing bracket, a stray comma or a wrong
    encoding.
    """


class InvalidUtf8(BadRequest):
    """The text is not valid UTF-8; encode it as UTF-8."""


class TooDeep(BadRequest):
    """The JSON is nested too deeply; flatten it."""


class NumberOutOfRange(BadRequest):
    """A number does not fit 64 bits or is not finite; send it as a string.

    Numbers are never rounded.
    """


class InvalidField(BadRequest):
    """A field has the wrong type or an impossible value; see `field`."""


class UnknownField(BadRequest):
    """The field is unknown; remove it or check its spelling.

    Free data belongs in `attributes` or `body`.
    """


class MissingField(BadRequest):
    """A required field is missing; see `field`."""


class FieldTooLong(BadRequest):
    """A field is too long; shorten it. Large data of an event goes into `body`."""

    def __init__(self, message: str | None = None, **details: Any) -> None:
        if "chars_max" in details:
            chars_max = details["chars_max"]
            message = message or f"This has at most {chars_max:,} characters; shorten it."
        super().__init__(message, **details)


class EmptyBatch(BadRequest):
    """There is no event in the request; send at least one."""


class UnknownChannel(BadRequest):
    """A channel is not defined in this zone; define it with PUT /v1/channels/{channel}."""


class NotPowerOfTwo(BadRequest):
    """A channel is one bit: its mask must be a power of two from 1 to 2^62 (bit 63 is the channel
    `default`).
    """


class InvalidMask(BadRequest):
    """A mask is a decimal string, an integer from 1 to 2^64-1, or a list of channel names."""


class InvalidCursor(BadRequest):
    """A start is `now`, `oldest`, `boot`, a cursor (`<segment>:<sequence>`, or an object of both),
    or a time with a UTC offset.
    """


class BodyNotFilterable(BadRequest):
    """A filter tests `attributes`, or the JSON body as `data` on a stream whose policy has
    `filterable_data`.
    """


class InvalidName(BadRequest):
    """A name is 1 to 200 characters of letters, digits, `.`, `_`, `-`, and starts with a letter or
    digit.
    """


class UnknownOperation(BadRequest):
    """The message's `op` is unknown; docs/session-protocol.md lists the messages to the hub."""


class ListenerExists(BadRequest):
    """This socket already has a listener of that name; stop it first, or choose another name."""


class UnknownListener(BadRequest):
    """This socket has no listener of that name."""


class Unauthenticated(EventHubError):
    """Send `Authorization: Bearer KEY` with an API key or a connection token."""

    status = 401

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        refused = b"" if type(self) is Unauthenticated else b', error="invalid_token"'
        return [*super().headers, (b"www-authenticate", b'Bearer realm="eventhub"' + refused)]


class InvalidCredentials(Unauthenticated):
    """The API key or token is invalid (mistyped, revoked, of another hub); request a new one."""


class TokenExpired(Unauthenticated):
    """The connection token has expired; create another with POST /v1/connection-tokens."""


class InvalidLogin(Unauthenticated):
    """The username or the password is wrong; `manage.py changepassword USERNAME` sets a new one."""


class InvalidSetupToken(Unauthenticated):
    """The set-up token is invalid, used or expired; ask an admin for another one."""


class Forbidden(EventHubError):
    """The key has no grant for this; ask an operator for a grant on this stream."""

    status = 403


class WiderGrant(Forbidden):
    """A key cannot grant more than it has: each grant must be within one of its own, and end no
    later than it does.
    """


class AddressNotAllowed(Forbidden):
    """The key may not be used from this address; use it from an allowed one, or ask its manager to
    add yours.
    """


class OriginNotAllowed(Forbidden):
    """Pages of this origin may not open a websocket here; the hub's administrator adds it to
    EVENTHUB_CORS_ORIGINS, or to EVENTHUB_ORIGINS if it is an address of the hub.
    """


class CsrfFailed(Forbidden):
    """A browser's login needs the header X-CSRFToken with the `csrf_token` of GET /v1/session."""


class NotFound(EventHubError):
    """Nothing exists at this path; check it."""

    status = 404


class UnknownStream(NotFound):
    """This zone has no such stream; create it with PUT /v1/streams/{stream}."""


class UnknownEvent(NotFound):
    """The stream has no event with that sequence (yet)."""


class MethodNotAllowed(EventHubError):
    """The path does not support this method; see the Allow header."""

    status = 405

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        allowed = self.details.get("allow")
        return [*super().headers, *([(b"allow", allowed.encode())] if allowed else [])]


class UpgradeRequired(EventHubError):
    """This path is a websocket; use a websocket client (`Upgrade: websocket`)."""

    status = 426

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        return [*super().headers, (b"upgrade", b"websocket"), (b"connection", b"upgrade")]


class RequestTimeout(EventHubError):
    """The request's body did not arrive in time; send it without pauses."""

    status = 408


class Conflict(EventHubError):
    """The request conflicts with what is stored."""

    status = 409


class ProducerWindow(Conflict):
    """The producer's number is older than its window, so it is unknown whether it was stored; use a
    new incarnation.
    """


class ChannelConflict(Conflict):
    """The channel's bit or name is taken by another channel of this zone."""


class LastAdmin(Conflict):
    """This is the last admin who can log in; make another operator an admin first."""


class LimitReached(Conflict):
    """The limit for these is reached; delete some first."""


class Gone(EventHubError):
    """The events at the cursor are no longer available; continue from `first_available`."""

    code = "gap"
    status = 410


class SegmentMismatch(Conflict):
    """The cursor's segment is not one of this stream, or does not contain that sequence; compare
    `current`.
    """


class BodyTooLarge(EventHubError):
    """The body is too large; send less in one request."""

    status = 413


class BatchTooLarge(EventHubError):
    """The request has too many events; split it."""

    status = 413


class EventTooLarge(EventHubError):
    """An event is too large; store large data elsewhere and send a reference."""

    status = 413


class HeadersTooLarge(EventHubError):
    """The request's headers, or the trailers after its last chunk, are too large; send less."""

    status = 431


class UnsupportedMediaType(EventHubError):
    """The Content-Type is not supported here; use application/json or application/x-ndjson."""

    status = 415


class TooManyRequests(EventHubError):
    """There are too many requests; wait for the seconds in Retry-After."""

    status = 429


# --- errors of the hub ---


class Unavailable(EventHubError):
    """The hub cannot do this now; nothing was stored. Try again after Retry-After seconds."""

    status = 503

    def __init__(self, message: str | None = None, *, retry_after_s: int = 1, **more: Any) -> None:
        super().__init__(message, retry_after_s=retry_after_s, **more)


class DatabaseUnavailable(Unavailable):
    """The database is unavailable; nothing was stored. Try again after Retry-After seconds."""


class DatabaseBusy(DatabaseUnavailable):
    """Too many requests of this process wait for the database; nothing was stored. Try again after
    Retry-After seconds.
    """


class OutcomeUnknown(Unavailable):
    """The connection to the database broke during the commit: the events may be stored or not.

    Repeating is safe with a producer id (`id` with `incarnation` and `sequence`); without one, read
    the stream first.
    """


class Overloaded(Unavailable):
    """Too many events are waiting to be stored; try again after Retry-After seconds."""


class LogHole(EventHubError):
    """Stored events that the segment's row lists are missing; the hub stops here rather than skip
    them.
    """
