"""Parses and validates emitted JSON (one event or an array) and NDJSON. Plain module."""

import base64
import binascii
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import compress
from operator import attrgetter
from typing import Annotated, Any, Literal, NoReturn

import msgspec
import orjson
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import astuple

from eventhub.base import errors, limits
from eventhub.base.clock import SystemClock
from eventhub.event import protobuf_codec, references
from eventhub.event.checked_json import check_json, check_values
from eventhub.event.envelope import DEFAULT_MASK
from eventhub.event.filterable import require_filterable

JSON = "application/json"
NDJSON = "application/x-ndjson"

NO_NUL = r"^[^\0]*$"  # the pattern of texts for the database: PostgreSQL refuses the character
Text = Annotated[str, Meta(max_length=limits.TEXT_CHARS_MAX)]
Key = Annotated[str, Meta(max_length=limits.TEXT_CHARS_MAX, pattern=NO_NUL)]
Named = Annotated[str, Meta(min_length=1, max_length=limits.TEXT_CHARS_MAX)]
Counted = Annotated[int, Meta(ge=0, le=2**63 - 1)]
# tuples: the empty default is shared by all events
Texts = Annotated[tuple[Text, ...], Meta(max_length=limits.LIST_ITEMS_MAX)]
Names = Annotated[tuple[Named, ...], Meta(max_length=limits.LIST_ITEMS_MAX)]
Moment = Annotated[datetime, Meta(tz=True)]
Priority = Annotated[int, Meta(ge=-1000, le=1000)]
Positive = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Lifetime = Annotated[int, Meta(ge=1, le=limits.EVENT_LIFETIME_MS_MAX)]
Delay = Annotated[int, Meta(ge=0, le=limits.TIMER_AHEAD_S_MAX * 1_000)]


class IdIn(Struct, forbid_unknown_fields=True):
    """A producer's id; repeats within the producer window are detected."""  # FOX-07

    sequence: Annotated[int, Meta(ge=1, le=2**63 - 1)]
    incarnation: Counted = 0
    timestamp: Counted = 0  # microseconds since 1970 UTC


class EventIn(Struct, forbid_unknown_fields=True, gc=False):  # JSON has no cycles
    """One event as a caller sends it."""

    domain: Named
    type: Named
    attributes: dict[str, Any] = {}
    channels: Annotated[list[Named], Meta(max_length=64)] | UnsetType = UNSET
    mask: int | str | UnsetType = UNSET
    id: IdIn | Named | None = None
    name: Text = ""
    version: Text = ""
    body: Any = UNSET
    body_base64: str | UnsetType = UNSET
    content_type: Text = ""
    node: Text = ""
    application: Texts = ()
    environment: dict[str, Text] = {}
    priority: Priority = 0
    expires_at: Moment | None = None
    time: Moment | None = None
    key: Key = ""
    bundle: Text = ""
    depends: Texts = ()
    correlation: Text = ""
    cause: Text = ""
    traceparent: Text = ""
    destinations: Names = ()
    audience: Names = ()
    security_level: Literal["low", "med", "high"] = "med"
    summary: Text = ""
    bundle_number: Positive | None = None
    time_constraint_ms: Positive | None = None
    merge_scheme: Text = ""
    tombstone: bool = False
    order: Literal["causal", "none"] | None = None  # of a session by default
    expires_in_ms: Lifetime | None = None  # from its receipt on; stored as `expires_at`
    # of a delayed event; never stored (delays.py)
    deliver_at: Moment | None = None
    delay_ms: Delay | None = None


_one = msgspec.json.Decoder(EventIn)
_many = msgspec.json.Decoder(list[EventIn])
_INT64_MAX = 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_TIME_US_MIN = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_TIME_US_MAX = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND


def parse(body: bytes, content_type: str) -> list[EventIn]:
    """Return the events of a request, at least one. Raises subclasses of BadRequest with `index`
    and `field`, BatchTooLarge, UnsupportedMediaType.
    """
    if content_type == NDJSON:
        found = _parse_lines(body)
    elif content_type == JSON:
        found = _parse_json(body)
    else:
        raise errors.UnsupportedMediaType(content_type=content_type[:100])
    if not found:
        raise errors.EmptyBatch
    if len(found) > limits.BATCH_EVENTS_MAX:
        raise errors.BatchTooLarge(events=len(found), events_max=limits.BATCH_EVENTS_MAX)
    return found


def from_objects(objects: list[dict[str, Any]]) -> list[EventIn]:
    """Validate Python objects like the events of a request (in-process use)."""
    return parse(orjson.dumps(objects), JSON)


def _parse_json(body: bytes) -> list[EventIn]:
    if body.lstrip(b" \t\r\n")[:1] == b"[":
        many: list[EventIn] = _decode(_many.decode, body, None)
        return many
    return [_decode(_one.decode, body, None)]


def _parse_lines(body: bytes) -> list[EventIn]:
    found: list[EventIn] = []
    for line in body.split(b"\n"):
        if line.strip():
            if len(found) == limits.BATCH_EVENTS_MAX:
                raise errors.BatchTooLarge(events_max=limits.BATCH_EVENTS_MAX)
            found.append(_decode(_one.decode, line, len(found)))
    return found


def _decode(decoder: Callable[[bytes], Any], data: bytes, index: int | None) -> Any:
    try:
        return decoder(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        refuse_json(error, index)


_MESSAGE_CHARS = 300  # a caller's own text may be long
_PATH = re.compile(r" - at (?:`key` in )?`\$?(.*)`$")
_INDEX = re.compile(r"^\[(\d+)\]")
_ITEM = re.compile(r"\[(\d+)\]")
_FIELD_NAMED = re.compile(r"field `(.*?)`")


def refuse_json(error: Exception, index: int | None = None) -> NoReturn:
    """Raise the hub's error for msgspec's, with index and field."""
    if isinstance(error, RecursionError):
        raise errors.TooDeep(index=index, depth_max=limits.JSON_DEPTH_MAX) from None
    if isinstance(error, UnicodeDecodeError):
        raise errors.InvalidUtf8(index=index, byte=error.start) from None
    text = str(error)
    if not isinstance(error, msgspec.ValidationError):
        if "utf-8" in text.lower() or "surrogate" in text.lower():
            raise errors.InvalidUtf8(text, index=index) from None
        raise errors.MalformedJson(f"{text}.", index=index) from None
    located = _PATH.search(text)
    path = located.group(1) if located else ""
    if index is None and (at := _INDEX.match(path)):
        index = int(at.group(1))
        path = path[at.end() :]
    field = _ITEM.sub(r".\1", path).lstrip(".") or None
    reason = _PATH.sub("", text)
    if repr(NO_NUL) in reason:
        reason = "Null characters are not allowed"
    named = _FIELD_NAMED.search(reason)
    if named:
        field = f"{field}.{named.group(1)}" if field else named.group(1)
    field = field and field[:_MESSAGE_CHARS]
    message = f"{reason[:_MESSAGE_CHARS]}."
    raise _validation_error(reason)(message, index=index, field=field) from None


def _validation_error(reason: str) -> type[errors.EventHubError]:
    if "unknown field" in reason:
        return errors.UnknownField
    if "missing required field" in reason:
        return errors.MissingField
    if "out of range" in reason or str(_INT64_MAX) in reason:
        return errors.NumberOutOfRange
    if "of length <=" in reason:
        return errors.FieldTooLong
    return errors.InvalidField


def parse_mask(mask: int | str | list[str]) -> int | list[str]:
    """Convert a number or decimal string to 64 unsigned bits; names are unchanged."""
    if isinstance(mask, list):
        if not mask:
            raise errors.InvalidMask(field="mask")
        return mask
    if isinstance(mask, str):
        if not (mask.isascii() and mask.isdigit() and len(mask) <= 20):
            raise errors.InvalidMask(field="mask")
        mask = int(mask)
    if not 0 < mask < 1 << 64:
        raise errors.InvalidMask(field="mask")
    return mask


def event_mask(event: EventIn) -> int | list[str]:
    """Return an event's bits, or channel names to look up; without either, `default`."""
    if event.channels is not UNSET:
        if event.mask is not UNSET:
            raise errors.InvalidMask("Give `channels` or `mask`, not both.", field="mask")
        return event.channels or DEFAULT_MASK
    if event.mask is UNSET:
        return DEFAULT_MASK
    return parse_mask(event.mask)


def stored_bytes(event: EventIn, *, client: str, mask: int, filterable_data: bool = False) -> bytes:
    """Return an event's stored bytes (EMC-04). The node defaults to the client (SUN-01).
    `filterable_data`: the policy of the stream, with which a JSON body has its bounds.
    """
    fields: dict[str, Any] = {
        "domain": event.domain,
        "type": event.type,
        "attributes": check_attributes(event.attributes),
        "mask": mask,
        "source": client,
        "node": event.node or client,
    }
    if astuple(event)[_AT:] != _NOT_GIVEN:  # one comparison: most events give nothing more
        _add_given(fields, event)
        if filterable_data and "body" in fields:
            body, content_type = fields["body"], fields["content_type"]
            fields["filterable_data"] = require_filterable(body, content_type, event.body)
    payload = protobuf_codec.encode_fields(fields)
    if len(payload) > limits.EVENT_BYTES_MAX:
        raise errors.EventTooLarge(bytes=len(payload), bytes_max=limits.EVENT_BYTES_MAX)
    return payload


_UNCHANGED = (  # fields that are copied as they are
    *("name", "version", "application", "priority", "key", "bundle", "depends", "correlation"),
    *("cause", "traceparent", "destinations", "audience", "summary", "bundle_number"),
    *("time_constraint_ms", "merge_scheme", "tombstone", "order"),
)
_AT = EventIn.__struct_fields__.index("mask") + 1
_NOT_GIVEN = astuple(EventIn(domain="-", type="-"))[_AT:]
_values = attrgetter(*_UNCHANGED)
_DEFAULTS = _values(EventIn(domain="-", type="-"))


def _add_given(fields: dict[str, Any], event: EventIn) -> None:
    values = _values(event)
    if values != _DEFAULTS:
        fields.update(compress(zip(_UNCHANGED, values, strict=False), values))
    if event.body is not UNSET or event.body_base64 is not UNSET or event.content_type:
        _add_body(fields, event)
    if event.id is not None:
        if isinstance(event.id, str):
            fields["text_id"] = event.id
        else:
            fields["producer_id"] = protobuf_codec.id_message(
                fields["source"], event.id.timestamp, event.id.sequence, event.id.incarnation
            )
    if event.environment:
        environment = check_json(event.environment, "environment", limits.ENVIRONMENT_BYTES_MAX)
        fields["environment"] = environment
    if event.time or event.expires_at or event.expires_in_ms:
        _add_times(fields, event)
    if event.security_level != "med":
        fields["security_level"] = event.security_level.upper()
    _check_together(event)


def _check_together(event: EventIn) -> None:
    if event.tombstone and not event.key:
        raise errors.MissingField("A tombstone ends the state of its `key`.", field="key")
    if event.bundle_number is not None and not event.bundle:
        raise errors.MissingField("A `bundle_number` counts within its `bundle`.", field="bundle")
    if event.deliver_at is not None or event.delay_ms is not None:  # an emit has taken them
        field = "delay_ms" if event.deliver_at is None else "deliver_at"
        raise errors.InvalidField("Only an emit can be delayed; omit the field.", field=field)


def _add_times(fields: dict[str, Any], event: EventIn) -> None:
    if event.time is not None:
        fields["time_us"] = microseconds(event.time, "time")
    if event.expires_at is not None:
        fields["expires_at_us"] = microseconds(event.expires_at, "expires_at")
    if event.expires_in_ms is not None:  # by the hub's clock (RDY-50)
        if event.expires_at is not None:
            message = "Give `expires_at` or `expires_in_ms`, not both."
            raise errors.InvalidField(message, field="expires_in_ms")
        fields["expires_at_us"] = SystemClock().now_us() + event.expires_in_ms * 1_000


def _add_body(fields: dict[str, Any], event: EventIn) -> None:
    if event.body is not UNSET:
        if event.body_base64 is not UNSET:
            raise errors.InvalidField("Give `body` or `body_base64`, not both.", field="body")
        if event.content_type not in ("", JSON):
            message = "A `body` given as JSON has the content type application/json."
            raise errors.InvalidField(message, field="content_type")
        fields["body"] = check_json(event.body, "body", limits.EVENT_BYTES_MAX)
        fields["content_type"] = JSON
        return
    if isinstance(event.body_base64, UnsetType):
        message = "A `content_type` needs a `body` or `body_base64`."
        raise errors.InvalidField(message, field="content_type")
    if not event.content_type:
        raise errors.MissingField("A body of bytes needs its `content_type`.", field="content_type")
    try:
        body = base64.b64decode(event.body_base64, validate=True)
    except (binascii.Error, ValueError):
        raise errors.InvalidField("Expected base64.", field="body_base64") from None
    if event.content_type == JSON:
        _check_json_bytes(body)
    fields["body"] = body
    fields["content_type"] = event.content_type


def _check_json_bytes(body: bytes) -> None:
    """Check that a body of type JSON is JSON: it goes into the frames of JSON readers unchanged."""
    try:
        check_json(msgspec.json.decode(body), "body_base64", limits.EVENT_BYTES_MAX)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        message = "The bytes are not JSON, as `content_type` says."
        raise errors.InvalidField(message, field="body_base64") from None


def microseconds(moment: datetime, field: str) -> int:
    """Convert to microseconds since 1970, within the years 1 to 9999 in UTC."""
    time_us = (moment - _EPOCH) // _MICROSECOND
    if not _TIME_US_MIN <= time_us <= _TIME_US_MAX:
        raise errors.InvalidField("A time must be in the years 1 to 9999 of UTC.", field=field)
    if time_us == 0:
        message = "The first moment of 1970 means `not given`; omit the field."
        raise errors.InvalidField(message, field=field)
    return time_us


def check_attributes(attributes: dict[str, Any]) -> bytes:
    """Return the attributes of an event as compact JSON. Raises what `check_json` raises, and
    InvalidReference.
    """
    text = check_json(attributes, "attributes", limits.ATTRIBUTES_BYTES_MAX)
    if len(attributes) > limits.ATTRIBUTES_COUNT_MAX:
        raise errors.FieldTooLong(field="attributes", count_max=limits.ATTRIBUTES_COUNT_MAX)
    check_values(attributes, text, "attributes", limits.ATTRIBUTES_VALUES_MAX)
    if references.MARK in text:
        references.check_references(attributes, "attributes")
    return text
