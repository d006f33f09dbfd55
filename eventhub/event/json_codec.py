"""The event in the hub's native JSON, as JSON readers get it. Plain module."""

import base64
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Required, TypedDict

import orjson
from msgspec import Meta

from eventhub.event.envelope import Event
from eventhub.event.identity import EventId
from eventhub.event.json_types import Int64, Time


class IdJson(TypedDict):
    """A producer's id, with its client."""

    client: str
    timestamp: Int64
    sequence: Int64
    incarnation: Int64


class EventJson(TypedDict, total=False):
    """An event's own fields; those that are not given are omitted."""

    domain: Required[str]
    type: Required[str]
    attributes: Required[dict[str, Any]]
    mask: Required[Annotated[str, Meta(description="64 channel bits as a decimal number.")]]
    id: IdJson | str
    source: Annotated[str, Meta(description="The client that emitted it.")]
    name: str
    version: str
    node: str
    key: str
    bundle: str
    correlation: str
    cause: str
    traceparent: str
    summary: str
    merge_scheme: str
    content_type: str
    body: Annotated[Any, Meta(description="If it is JSON.")]
    body_base64: Annotated[str, Meta(description="If it is not.")]
    application: list[str]
    environment: dict[str, str]
    depends: list[str]
    destinations: list[str]
    audience: list[str]
    security_level: Literal["low", "high"]
    priority: int
    bundle_number: Int64
    time_constraint_ms: Int64
    tombstone: bool
    order: Literal["causal", "none"]
    expires_at: Time
    time: Time


_TEXTS = (
    *("source", "name", "version", "node", "key", "bundle", "correlation", "cause", "traceparent"),
    *("summary", "merge_scheme", "order"),
)
_GROUPED = ("application", "environment", "depends", "destinations", "audience")
_PLAIN = ("priority", "bundle_number", "time_constraint_ms", "tombstone")


def time_text(time_us: int) -> str:
    """Format microseconds since 1970 as RFC 3339 in UTC, `2026-11-21T08:00:00.000000Z`."""
    moment = datetime.fromtimestamp(time_us // 1_000_000, UTC).replace(
        microsecond=time_us % 1_000_000
    )
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def moment_text(moment: datetime) -> str:
    """Format a time with an offset as `time_text` does."""
    return time_text(int(moment.timestamp()) * 1_000_000 + moment.microsecond)


def event_json(event: Event) -> bytes:
    """Return the event's own fields as the JSON of an EventJson.

    `mask` is a decimal string, because it may exceed the range of a JavaScript number. A JSON body
    is `body`, any other is `body_base64`.
    """
    fields: dict[str, Any] = {"domain": event.domain, "type": event.type}
    if event.id is not None:
        fields["id"] = _id_json(event.id)
    for name in _TEXTS:
        value = getattr(event, name)
        if value:
            fields[name] = value
    fields["attributes"] = event.attributes
    if event.body is not None:
        fields["content_type"] = event.content_type
        if event.content_type == "application/json":
            fields["body"] = orjson.Fragment(event.body)
        else:
            fields["body_base64"] = base64.b64encode(event.body).decode()
    fields["mask"] = str(event.mask)
    _add_optional(fields, event)
    return orjson.dumps(fields)


def _id_json(event_id: EventId | str) -> Any:
    if isinstance(event_id, str):
        return event_id
    return {"client": event_id.client, **event_id.wire()}


def _add_optional(fields: dict[str, Any], event: Event) -> None:
    for name in _GROUPED:
        if value := getattr(event, name):
            fields[name] = value
    if event.security_level != "med":
        fields["security_level"] = event.security_level
    for name in _PLAIN:
        if value := getattr(event, name):
            fields[name] = value
    if event.expires_at_us:
        fields["expires_at"] = time_text(event.expires_at_us)
    if event.time_us:
        fields["time"] = time_text(event.time_us)
