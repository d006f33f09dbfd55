"""FOX's XML format of an event: the schema of chapter 14, with its order and cardinalities checked.
Plain module.

The schema has no domain, type, attributes and body: they are dropped, and an event received in this
format has domain `fox` and type `event`. Its EventId is the producer's own id. Securitylevel
defaults to `med`, as the text of chapter 14 says (its listing says `low`; FOX-19).

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
        *("id", "version", "security_level", "bundle", "bundle_number", "time_constraint_ms"),
        *("merge_scheme", "depends", "application", "summary"),
    }
)

_NAMESPACE = "urn:eventhub:mspaces"
_BUNDLE = "bundle:"  # an entry of `depends` that names a bundle; any other names a stream

# The names of an element's children, each followed by a space, as a pattern.
_CHILDREN = {
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
    """The parts of a document outside of the event: its stream, liveness and latest version."""

    stream: str
    liveness: str = "live"  # or recovery
    latest_version: str = ""  # of its type, if newer than the event's


class FoxDocument(NamedTuple):
    """A parsed document."""

    event: EventIn
    client: str
    context: FoxContext


# --- reading ---


def read(body: bytes) -> FoxDocument:
    """Parse a document. Raises MalformedXml, and InvalidXml with the element's path, line and
    column.
    """
    root = xml_tree.parse(body)
    if root.name != "Event":
        raise root.invalid("The root element must be `Event`.")
    _check(root)
    stream, own_id, kind, linkage, *rest = root.children
    level, liveness = _attribute(kind, "Securitylevel"), _attribute(kind, "Liveness")
    fields = {
        "domain": DOMAIN,
        "type": TYPE,
        "id": dict(zip(_ID, map(_whole, own_id.children[1:]), strict=True)),
        "version": kind.children[0].text,
        "security_level": level,
        "application": [node.text for node in rest if node.name == "ApplicationType"],
        "summary": "".join(node.text for node in rest if node.name == "Summary"),
        **_linkage(linkage, stream.text),
    }
    latest = kind.children[1].text if len(kind.children) > 1 else ""
    return FoxDocument(
        _event(fields), own_id.children[0].text, FoxContext(stream.text, liveness, latest)
    )


def _event(fields: dict[str, object]) -> EventIn:
    try:
        return msgspec.convert(fields, EventIn)
    except msgspec.ValidationError as error:
        refuse_json(error)


def _check(node: Node) -> None:
    """Check that the element and its descendants have the children of the schema, in its order."""
    expected = _CHILDREN.get(node.name)
    if expected is None:
        if node.children:
            raise node.children[0].invalid(f"`{node.name}` has only text.")
        return
    found = "".join(f"{child.name} " for child in node.children)
    if not re.fullmatch(expected, found):
        names = ", ".join(child.name for child in node.children)[:500] or "nothing"
        raise node.invalid(f"`{node.name}` must contain `{expected.strip()}`, not {names}.")
    text = node.text.strip()
    if text and not (node.name == "BundleLinkage" and text == "NONE" and not node.children):
        raise node.invalid(f"`{node.name}` has no text.")
    for child in node.children:
        _check(child)


def _attribute(node: Node, name: str) -> str:
    default, allowed = _ATTRIBUTES[name]
    value = node.attributes.get(name, default)
    if value not in allowed:
        raise node.invalid(f"`{name}` must be one of {', '.join(allowed)}.")
    return value


def _whole(node: Node) -> int:
    text = node.text.strip()
    if not re.fullmatch("[0-9]{1,19}", text):
        raise node.invalid("Expected an integer.")
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
    if depends != [own_stream]:  # its own stream alone: no dependency
        found["depends"] = depends
    return found


# --- writing ---


def write(event: Event, context: FoxContext) -> str:
    """Return the event as a document. Raises NotRepresentable with the field: of the attributes,
    which are dropped, only for events and references.
    """
    for name, value in event.attributes.items():
        if isinstance(value, dict):
            message = "FOX's schema has no events in events and no references."
            raise NotRepresentable(message, field=f"attributes.{name}"[:300])
    own = event.id
    if not isinstance(own, EventId):
        message = "The event needs an `id` with client, timestamp, sequence and incarnation."
        raise NotRepresentable(message, field="id")
    kind = _leaf("VersionNum", event.version)
    if context.latest_version:
        kind += _leaf("LatestVersionNum", context.latest_version)
    level = f'Securitylevel="{event.security_level}" Liveness="{context.liveness}"'
    parts = [
        _leaf("StreamId", context.stream),
        _element(
            "EventId",
            _leaf("ClientId", own.client)
            + _leaf("TimeStamp", str(own.timestamp_us))
            + _leaf("SequenceNumber", str(own.sequence))
            + _leaf("Incarnation", str(own.incarnation)),
        ),
        f"<Mspaces:EventType {level}>{kind}</Mspaces:EventType>",
        _element("EventLinkage", _write_linkage(event, context.stream)),
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
            raise NotRepresentable("A bundle needs its number.", field="bundle_number")
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


# XML 1.0 cannot represent these, not even escaped
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _leaf(name: str, text: str) -> str:
    if _NOT_XML.search(text):
        raise NotRepresentable("XML cannot represent a control character.", field=name)
    return _element(name, escape(text, {"\r": "&#13;"}))


def _element(name: str, inner: str) -> str:
    return f"<Mspaces:{name}>{inner}</Mspaces:{name}>"


def require_origin(found: FoxDocument, *, stream: str, client: str) -> EventIn:
    """Return the event. Raises InvalidField if it names another stream or client than the
    request's.
    """
    if found.context.stream != stream:
        message = f"The event is emitted to the stream `{stream}`."
        raise errors.InvalidField(message, field="Event/StreamId")
    if found.client != client:
        message = f"The event is emitted by the client `{client}`."
        raise errors.InvalidField(message, field="Event/EventId/ClientId")
    return found.event
