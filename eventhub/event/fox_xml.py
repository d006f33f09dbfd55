"""FOX's XML form of an event: the schema of its chapter 14, its order and cardinalities checked.
Plain module.

The schema says nothing of domain, type, attributes and body: they are dropped, and an event that
comes in this form is of domain `fox` and type `event`. Its EventId is the producer's own id.
Securitylevel is `med` where it is not given, as the text of chapter 14 says (its listing says
`low`; FOX-19).

Source: FOX 14, 14.1, table 14.1 (FOX-18).
"""

import re
from collections.abc import Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape  # writes; reading is xml_tree's

import msgspec

from eventhub.base import errors
from eventhub.event import xml_tree
from eventhub.event.envelope import Event
from eventhub.event.errors import NotRepresentable
from eventhub.event.identity import EventId
from eventhub.event.inbound import EventIn, refuse_json
from eventhub.event.xml_tree import Node

CONTENT_TYPES = ("application/xml", "text/xml")
DOMAIN = "fox"
TYPE = "event"

CARRIES = frozenset(
    {
        "id",
        "version",
        "security_level",
        "bundle",
        "bundle_number",
        "time_constraint_ms",
        "merge_scheme",
        "depends",
        "application",
        "summary",
    }
)

_NAMESPACE = "urn:eventhub:mspaces"
_BUNDLE = "bundle:"  # an entry of `depends` that names a bundle; any other names a stream

# What an element holds: the names of its children, each with a space behind it, as a pattern.
_HOLDS = {
    "Event": "StreamId EventId EventType EventLinkage (ApplicationType )*(Summary )?",
    "EventId": "ClientId TimeStamp SequenceNumber Incarnation ",
    "EventType": "VersionNum (LatestVersionNum )?",
    "EventLinkage": "(BundleId BundleNumber )?BundleLinkage BundleOrder ",
    "BundleLinkage": "(TimeConstraint )?(MergeScheme )?",
    "BundleOrder": "((StreamId )+|(BundleId )+)",
}
_ID = ("timestamp", "sequence", "incarnation")
_ATTRIBUTES = {
    "Securitylevel": ("med", ("low", "med", "high")),
    "Liveness": ("live", ("live", "recovery")),
}


class FoxContext(NamedTuple):
    """What the form says beside the event: where it is, and how it came."""

    stream: str
    liveness: str = "live"  # or recovery
    latest_version: str = ""  # of its type, if newer than the event's


class FoxDocument(NamedTuple):
    """An event in this form, as it was written."""

    event: EventIn
    client: str
    told: FoxContext


# --- in ---


def read(body: bytes) -> FoxDocument:
    """Raises MalformedXml, InvalidXml with the element's path, line and column."""
    root = xml_tree.parse(body)
    if root.name != "Event":
        raise root.invalid("An event is an element `Event`.")
    _check(root)
    stream, made, kind, linkage, *rest = root.children
    level, liveness = _attribute(kind, "Securitylevel"), _attribute(kind, "Liveness")
    fields = {
        "domain": DOMAIN,
        "type": TYPE,
        "id": dict(zip(_ID, map(_whole, made.children[1:]), strict=True)),
        "version": kind.children[0].text,
        "security_level": level,
        "application": [node.text for node in rest if node.name == "ApplicationType"],
        "summary": "".join(node.text for node in rest if node.name == "Summary"),
        **_linkage(linkage, stream.text),
    }
    latest = kind.children[1].text if len(kind.children) > 1 else ""
    return FoxDocument(
        _event(fields), made.children[0].text, FoxContext(stream.text, liveness, latest)
    )


def _event(fields: dict[str, object]) -> EventIn:
    try:
        return msgspec.convert(fields, EventIn)
    except msgspec.ValidationError as error:
        refuse_json(error)


def _check(node: Node) -> None:
    """The element holds what the schema says, in its order, and so do those in it."""
    holds = _HOLDS.get(node.name)
    if holds is None:
        if node.children:
            raise node.children[0].invalid(f"`{node.name}` holds only text.")
        return
    found = "".join(f"{child.name} " for child in node.children)
    if not re.fullmatch(holds, found):
        names = ", ".join(child.name for child in node.children)[:500] or "nothing"
        raise node.invalid(f"`{node.name}` holds `{holds.strip()}`, not {names}.")
    text = node.text.strip()
    if text and not (node.name == "BundleLinkage" and text == "NONE" and not node.children):
        raise node.invalid(f"`{node.name}` holds no text.")
    for child in node.children:
        _check(child)


def _attribute(node: Node, name: str) -> str:
    default, allowed = _ATTRIBUTES[name]
    value = node.attributes.get(name, default)
    if value not in allowed:
        raise node.invalid(f"`{name}` is {', '.join(allowed)}.")
    return value


def _whole(node: Node) -> int:
    text = node.text.strip()
    if not re.fullmatch("[0-9]{1,19}", text):
        raise node.invalid("A whole number.")
    return int(text)


def _linkage(node: Node, own_stream: str) -> dict[str, object]:
    found: dict[str, object] = {}
    *bundle, linkage, order = node.children
    if bundle:
        found = {"bundle": bundle[0].text, "bundle_number": _whole(bundle[1])}
    for scheme in linkage.children:
        if scheme.name == "TimeConstraint":
            found["time_constraint_ms"] = _whole(scheme)
        else:
            found["merge_scheme"] = scheme.text
    prefix = _BUNDLE if order.children[0].name == "BundleId" else ""
    depends = [prefix + child.text for child in order.children]
    if depends != [own_stream]:  # its own stream alone: it depends on nothing
        found["depends"] = depends
    return found


# --- out ---


def write(event: Event, told: FoxContext) -> str:
    """The event as a document. Raises NotRepresentable with the field."""
    made = event.id
    if not isinstance(made, EventId):
        message = "Only an event with an `id` of client, timestamp, sequence and incarnation."
        raise NotRepresentable(message, field="id")
    kind = _leaf("VersionNum", event.version)
    if told.latest_version:
        kind += _leaf("LatestVersionNum", told.latest_version)
    level = f'Securitylevel="{event.security_level}" Liveness="{told.liveness}"'
    parts = [
        _leaf("StreamId", told.stream),
        _element(
            "EventId",
            _leaf("ClientId", made.client)
            + _leaf("TimeStamp", str(made.timestamp_us))
            + _leaf("SequenceNumber", str(made.sequence))
            + _leaf("Incarnation", str(made.incarnation)),
        ),
        f"<Mspaces:EventType {level}>{kind}</Mspaces:EventType>",
        _element("EventLinkage", _write_linkage(event, told.stream)),
        *(_leaf("ApplicationType", text) for text in event.application),
    ]
    if event.summary:
        parts.append(_leaf("Summary", event.summary))
    inner = "".join(parts)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<Mspaces:Event xmlns:Mspaces="{_NAMESPACE}">{inner}</Mspaces:Event>'
    )


def _write_linkage(event: Event, stream: str) -> str:
    parts = []
    if event.bundle:
        if not event.bundle_number:
            raise NotRepresentable("A bundle has a number here.", field="bundle_number")
        parts.append(_leaf("BundleId", event.bundle))
        parts.append(_leaf("BundleNumber", str(event.bundle_number)))
    scheme = ""
    if event.time_constraint_ms:
        scheme += _leaf("TimeConstraint", str(event.time_constraint_ms))
    if event.merge_scheme:
        scheme += _leaf("MergeScheme", event.merge_scheme)
    parts.append(_element("BundleLinkage", scheme or "NONE"))
    parts.append(_element("BundleOrder", _order(event.depends or (stream,))))
    return "".join(parts)


def _order(depends: Sequence[str]) -> str:
    bundles = [text.startswith(_BUNDLE) for text in depends]
    if all(bundles):
        return "".join(_leaf("BundleId", text.removeprefix(_BUNDLE)) for text in depends)
    if any(bundles):
        message = "A `BundleOrder` names streams or bundles, not both."
        raise NotRepresentable(message, field="depends")
    return "".join(_leaf("StreamId", text) for text in depends)


# XML 1.0 cannot say these, not even escaped
_UNSPEAKABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _leaf(name: str, text: str) -> str:
    if _UNSPEAKABLE.search(text):
        raise NotRepresentable("XML has no writing for a control character.", field=name)
    return _element(name, escape(text, {"\r": "&#13;"}))


def _element(name: str, inner: str) -> str:
    return f"<Mspaces:{name}>{inner}</Mspaces:{name}>"


def require_origin(found: FoxDocument, *, stream: str, client: str) -> EventIn:
    """The event, if it is of the stream and the client that it is emitted to and by."""
    if found.told.stream != stream:
        raise errors.InvalidField(f"The event goes to `{stream}`.", field="Event/StreamId")
    if found.client != client:
        raise errors.InvalidField(f"The client is `{client}`.", field="Event/EventId/ClientId")
    return found.event
