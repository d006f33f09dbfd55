"""Parses the URL and headers of a request to the events route. Plain module."""

from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import msgspec

from delivery.listening.errors import NotAcceptable
from delivery.listening.request import (
    EventSelection,
    ListenRequest,
    SnapshotMode,
    parse_selection,
)
from eventhub.access.keys import is_key
from eventhub.base import errors, limits
from eventhub.event.inbound import parse_mask, refuse_json
from eventhub.eventlog.start_positions import parse_start
from eventhub.http.messages import Headers, read_head, require_one_credential
from registrations.filter_source import FILTER_FIELDS
from registrations.filters.languages import LANGUAGES

JSON = b"application/json"
LINES = b"application/x-ndjson"
PROTOBUF = b"application/x-protobuf"
SSE = b"text/event-stream"
CLOUDEVENTS = b"application/cloudevents-batch+json"
MEDIA_TYPES = (JSON, LINES, PROTOBUF, SSE, CLOUDEVENTS)
_TRANSPORTS = {JSON: "poll", CLOUDEVENTS: "poll", LINES: "lines", PROTOBUF: "lines", SSE: "sse"}
_ANY = (b"*/*", b"application/*", b"")
_STATES: tuple[SnapshotMode, ...] = ("gap", "always", "never")


class EventsRequest(NamedTuple):
    """One request. `limit` None: everything up to the head, if the media type allows it."""

    listen: ListenRequest
    media_type: bytes  # one of MEDIA_TYPES
    timeout_s: float = 0.0
    limit: int | None = None
    backward: bool = False


def credential_of(query_string: bytes, headers: Headers) -> str:
    """Return the credential of the header, or for browsers, whose EventSource and WebSocket send no
    headers, that of `?access_token=` (RFC 6750). Raises Unauthenticated, InvalidCredentials.
    """
    found = _token_of(query_string, headers)
    return read_head(headers).credential if found is None else found


def _token_of(query_string: bytes, headers: Headers) -> str | None:
    """Return the connection token in the URL; None if there is none. Raises InvalidCredentials for
    an API key, Unauthenticated for a token that is too long, InvalidField for a second credential.
    """
    if b"access_token" not in query_string:
        return None
    pairs = parse_qsl(query_string.decode("latin-1"), keep_blank_values=True)
    found = [value for name, value in pairs if name == "access_token"]
    if not found:
        return None
    require_one_credential(headers, others=len(found))
    if is_key(found[0]):
        raise errors.InvalidCredentials(
            "An API key does not belong in a URL; use a connection token."
        )
    if len(found[0]) > limits.TOKEN_BYTES_MAX:
        raise errors.Unauthenticated("The token is longer than any of this hub.")
    return found[0]


def parse_request(stream: str, query: dict[str, str], headers: Headers) -> EventsRequest:
    """Parse the request without its credential. Raises subclasses of BadRequest with the parameter
    as field, and NotAcceptable.
    """
    media_type = accepted(headers, MEDIA_TYPES)
    timeout_s = _timeout(query)
    last_id = next(
        (v for n, v in headers if n == b"last-event-id" and v and media_type == SSE), None
    )
    start = query.get("from", "now").replace(" ", "+")  # a `+` of an offset that is not encoded
    if last_id is not None:
        start = last_id.decode("latin-1")
    pairs, filter = _selection(query)
    listen = ListenRequest(
        stream=stream,
        start=parse_start(start),
        mask=_mask(query),
        pairs=pairs,
        filter=filter,
        registrations=_registrations(query),
        state=_state(query, media_type),
        passes_gaps=media_type == SSE,
        history=media_type != SSE and timeout_s == 0,
        signature=_signature(query),
        transport=_TRANSPORTS[media_type],
    )
    backward = _backward(query, media_type)
    limit = _limit(query, media_type)
    if media_type == SSE and ("timeout" in query or "limit" in query):
        raise errors.InvalidField(
            "Server-sent events do not end; omit `timeout` and `limit`.", field="timeout"
        )
    if backward and (timeout_s or listen.registrations):
        field = "timeout" if timeout_s else "registrations"
        raise errors.InvalidField(
            "Pages backward take neither `timeout` nor `registrations`.", field=field
        )
    return EventsRequest(listen, media_type, timeout_s, limit, backward)


def accepted(headers: Headers, known: tuple[bytes, ...]) -> bytes:
    """Return the known media type of `Accept` with the highest weight; without `Accept` the first
    of `known`. Raises NotAcceptable.
    """
    ranges: list[tuple[float, bytes]] = []
    for name, value in headers:
        if name == b"accept":
            ranges += [_range(item) for item in value.split(b",")]
    for weight, media in sorted(ranges, key=lambda item: -item[0]):
        if weight > 0 and (media in known or media in _ANY):
            return known[0] if media in _ANY else media
    if ranges:
        raise NotAcceptable(field="accept", known=[media.decode() for media in known])
    return known[0]


def _range(item: bytes) -> tuple[float, bytes]:
    media, *parameters = (part.strip().lower() for part in item.split(b";"))
    for parameter in parameters:
        if parameter.startswith(b"q="):
            try:
                return float(parameter[2:]), media
            except ValueError:
                return 0.0, media
    return 1.0, media


def _mask(query: dict[str, str]) -> int | list[str] | None:
    if "channels" in query:
        if "mask" in query:
            raise errors.InvalidMask("Give `channels` or `mask`, not both.", field="mask")
        names = query["channels"].split(",")
        if len(names) > limits.QUERY_NAMES_MAX or not all(names):
            raise errors.InvalidMask(field="channels")
        return names
    return parse_mask(query["mask"]) if "mask" in query else None


def _selection(query: dict[str, str]) -> EventSelection:
    fields: dict[str, Any] = {name: query[name] for name in FILTER_FIELDS if name in query}
    language = LANGUAGES.get(fields.get("language", ""))
    of_json = ["attributes", "filter"] if language and language.kind == "json" else ["attributes"]
    for name in of_json:
        if name in query:
            fields[name] = _json(query[name], name)
    return parse_selection(fields, registrations="registrations" in query)


def _json(text: str, field: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        try:
            refuse_json(error)
        except errors.EventHubError as refused:
            refused.field = field
            raise


def _registrations(query: dict[str, str]) -> tuple[int, ...]:
    if "registrations" not in query:
        return ()
    texts = query["registrations"].split(",")
    if len(texts) > limits.LISTEN_REGISTRATIONS_MAX:
        most = limits.LISTEN_REGISTRATIONS_MAX
        message = f"A listener names at most {most} registrations; start several listeners."
        raise errors.FieldTooLong(message, field="registrations", max=most)
    return tuple(_number(text, "registrations") for text in texts)


def _signature(query: dict[str, str]) -> bool:
    text = query.get("signature", "false")
    if text not in ("true", "false"):
        raise errors.InvalidField("This is `true` or `false`.", field="signature")
    return text == "true"


def _state(query: dict[str, str], media_type: bytes) -> SnapshotMode:
    """Parse `state`. A snapshot has frames of its own, so only server-sent events can have one."""
    if "state" not in query:
        return "gap" if media_type == SSE else "never"
    for known in _STATES:
        if query["state"] == known and (media_type == SSE or known == "never"):
            return known
    raise errors.InvalidField(
        "`state` is gap, always or never, with server-sent events; for a page, request"
        " GET /v1/streams/{stream}/state.",
        field="state",
    )


def _timeout(query: dict[str, str]) -> float:
    try:
        seconds = float(query.get("timeout", "0"))
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= limits.POLL_TIMEOUT_S_MAX:
        message = f"`timeout` is a number of seconds from 0 to {limits.POLL_TIMEOUT_S_MAX}."
        raise errors.InvalidField(message, field="timeout")
    return seconds


def _limit(query: dict[str, str], media_type: bytes) -> int | None:
    """Parse `limit`; a page in one piece has a default and a maximum."""
    whole = media_type in (JSON, CLOUDEVENTS) or query.get("order") == "backward"
    if "limit" not in query:
        return limits.HISTORY_EVENTS_DEFAULT if whole else None
    limit = _number(query["limit"], "limit")
    if whole and limit > limits.HISTORY_EVENTS_MAX:
        message = f"A page has at most {limits.HISTORY_EVENTS_MAX} events."
        raise errors.InvalidField(message, field="limit")
    return limit


def _backward(query: dict[str, str], media_type: bytes) -> bool:
    order = query.get("order", "forward")
    if order not in ("forward", "backward") or (order == "backward" and media_type == SSE):
        raise errors.InvalidField("`order` is forward or, for pages, backward.", field="order")
    return order == "backward"


def _number(text: str, field: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text) > 0):
        raise errors.InvalidField(f"`{field}` takes whole numbers of 1 or more.", field=field)
    return int(text)
