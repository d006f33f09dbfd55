"""FOX's XML format: exactly its schema, and no attack on an XML parser (FOX-18, 19)."""

from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub.base import errors, limits
from eventhub.event import fox_xml
from eventhub.event.envelope import Event
from eventhub.event.errors import InvalidXml, MalformedXml, NotRepresentable
from eventhub.event.fox_xml import FoxContext
from eventhub.event.identity import EventId
from eventhub.event.inbound import stored_bytes
from eventhub.event.protobuf_codec import decode

REFERENCE = """<?xml version="1.0"?>
<Mspaces:Event>
  <Mspaces:StreamId>quotes</Mspaces:StreamId>
  <Mspaces:EventId>
    <Mspaces:ClientId>fox</Mspaces:ClientId>
    <Mspaces:TimeStamp>1700000000000000</Mspaces:TimeStamp>
    <Mspaces:SequenceNumber>7</Mspaces:SequenceNumber>
    <Mspaces:Incarnation>2</Mspaces:Incarnation>
  </Mspaces:EventId>
  <Mspaces:EventType Securitylevel="high" Liveness="recovery">
    <Mspaces:VersionNum>1</Mspaces:VersionNum>
    <Mspaces:LatestVersionNum>2</Mspaces:LatestVersionNum>
  </Mspaces:EventType>
  <Mspaces:EventLinkage>
    <Mspaces:BundleId>b1</Mspaces:BundleId>
    <Mspaces:BundleNumber>3</Mspaces:BundleNumber>
    <Mspaces:BundleLinkage>
      <Mspaces:TimeConstraint>500</Mspaces:TimeConstraint>
      <Mspaces:MergeScheme>zip</Mspaces:MergeScheme>
    </Mspaces:BundleLinkage>
    <Mspaces:BundleOrder>
      <Mspaces:StreamId>a</Mspaces:StreamId>
      <Mspaces:StreamId>b</Mspaces:StreamId>
    </Mspaces:BundleOrder>
  </Mspaces:EventLinkage>
  <Mspaces:ApplicationType>trade</Mspaces:ApplicationType>
  <Mspaces:Summary>a quote &amp; more</Mspaces:Summary>
</Mspaces:Event>"""
EXPECTED = Event(
    "fox",
    "event",
    {},
    id=EventId("fox", 1_700_000_000_000_000, 7, 2),
    source="fox",
    node="fox",
    version="1",
    mask=1,
    security_level="high",
    bundle="b1",
    bundle_number=3,
    time_constraint_ms=500,
    merge_scheme="zip",
    depends=("a", "b"),
    application=("trade",),
    summary="a quote & more",
)


def taken(text: str) -> tuple[Event, FoxContext]:
    found = fox_xml.read(text.encode())
    payload = stored_bytes(found.event, client=found.client, mask=1)
    return decode(payload), found.context


@pytest.mark.req("FOX-18")
def test_the_reference_event_is_read_and_written() -> None:
    event, context = taken(REFERENCE)
    assert event == EXPECTED
    assert context == FoxContext("quotes", "recovery", "2")
    again, context_again = taken(fox_xml.write(event, context))
    assert (again, context_again) == (event, context)


@pytest.mark.req("FOX-18")
def test_the_output_has_the_elements_in_the_schemas_order() -> None:
    root = ElementTree.fromstring(fox_xml.write(EXPECTED, FoxContext("quotes")))
    assert [child.tag.partition("}")[2] for child in root] == [
        "StreamId",
        "EventId",
        "EventType",
        "EventLinkage",
        "ApplicationType",
        "Summary",
    ]


def without(*names: str) -> str:
    """Return the reference without the elements of these names, one line each."""
    lines = REFERENCE.splitlines()
    return "\n".join(line for line in lines if not any(f"<Mspaces:{n}>" in line for n in names))


SUMMARY = "  <Mspaces:Summary>a quote &amp; more</Mspaces:Summary>\n"
TRADE = "  <Mspaces:ApplicationType>trade</Mspaces:ApplicationType>\n"
STREAM = "  <Mspaces:StreamId>quotes</Mspaces:StreamId>\n"
TIME = "      <Mspaces:TimeConstraint>500</Mspaces:TimeConstraint>\n"
SCHEME = "      <Mspaces:MergeScheme>zip</Mspaces:MergeScheme>\n"
ORDER_B = "      <Mspaces:StreamId>b</Mspaces:StreamId>\n"

VALID = {
    "no application": REFERENCE.replace(TRADE, ""),
    "three applications": REFERENCE.replace(TRADE, TRADE * 3),
    "no summary": REFERENCE.replace(SUMMARY, ""),
    "no latest version": without("LatestVersionNum"),
    "no bundle": without("BundleId", "BundleNumber"),
    "only a time constraint": REFERENCE.replace(SCHEME, ""),
    "only a merge scheme": REFERENCE.replace(TIME, ""),
    "an empty linkage": REFERENCE.replace(SCHEME, "").replace(TIME, ""),
    "NONE": REFERENCE.replace(SCHEME, "NONE").replace(TIME, ""),
    "one stream in the order": REFERENCE.replace(ORDER_B, ""),
    "bundles in the order": REFERENCE.replace("StreamId>a<", "BundleId>a<")
    .replace("a</Mspaces:StreamId", "a</Mspaces:BundleId")
    .replace("StreamId>b<", "BundleId>b<")
    .replace("b</Mspaces:StreamId", "b</Mspaces:BundleId"),
    "no prefix": REFERENCE.replace("Mspaces:", ""),
    "a bound prefix": REFERENCE.replace("<Mspaces:Event>", '<Mspaces:Event xmlns:Mspaces="urn:x">'),
}


@pytest.mark.req("FOX-18")
@pytest.mark.parametrize("text", VALID.values(), ids=VALID)
def test_valid_documents_survive_a_round_trip(text: str) -> None:
    event, context = taken(text)
    assert taken(fox_xml.write(event, context)) == (event, context)


INVALID = {
    "two summaries": (REFERENCE.replace(SUMMARY, SUMMARY * 2), "Event"),
    "a bundle number alone": (without("BundleId"), "Event/EventLinkage"),
    "a bundle alone": (without("BundleNumber"), "Event/EventLinkage"),
    "summary before application": (
        REFERENCE.replace(TRADE, "").replace(SUMMARY, SUMMARY + TRADE),
        "Event",
    ),
    "no stream": (REFERENCE.replace(STREAM, ""), "Event"),
    "two streams": (REFERENCE.replace(STREAM, STREAM * 2), "Event"),
    "no client": (without("ClientId"), "Event/EventId"),
    "no version": (without("VersionNum"), "Event/EventType"),
    "no order": (without("StreamId"), "Event"),
    "scheme before time": (
        REFERENCE.replace(TIME, "").replace(SCHEME, SCHEME + TIME),
        "Event/EventLinkage/BundleLinkage",
    ),
    "mixed order": (
        REFERENCE.replace(ORDER_B, ORDER_B.replace("StreamId", "BundleId")),
        "Event/EventLinkage/BundleOrder",
    ),
    "NONE beside a scheme": (
        REFERENCE.replace(TIME, "NONE"),
        "Event/EventLinkage/BundleLinkage",
    ),
    "another element": (REFERENCE.replace(SUMMARY, SUMMARY + "<x/>"), "Event"),
    "an element in a text": (
        REFERENCE.replace("trade", "<b>trade</b>"),
        "Event/ApplicationType/b",
    ),
    "text among elements": (REFERENCE.replace(SUMMARY, SUMMARY + "text"), "Event"),
    "level": (REFERENCE.replace('"high"', '"secret"'), "Event/EventType"),
    "liveness": (REFERENCE.replace('"recovery"', '"playback"'), "Event/EventType"),
    "no number": (
        REFERENCE.replace(">7<", ">seven<"),
        "Event/EventId/SequenceNumber",
    ),
    "another root": ("<Mspaces:Other/>", "Other"),
    "too many": (
        REFERENCE.replace(TRADE, TRADE * limits.XML_ELEMENTS_MAX),
        "Event/ApplicationType",
    ),
    "too deep": ("<Event>" + "<Event>" * limits.XML_DEPTH_MAX, "Event" + "/Event" * 8),
}


@pytest.mark.req("FOX-18")
@pytest.mark.parametrize(("text", "path"), INVALID.values(), ids=INVALID)
def test_invalid_documents_are_refused_with_their_position(text: str, path: str) -> None:
    with pytest.raises(InvalidXml) as caught:
        taken(text)
    assert caught.value.field == path
    assert caught.value.details["line"] >= 1


BOMB = '<!DOCTYPE Event [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>'
FILE = '<!DOCTYPE Event [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
EXTERNAL = '<!DOCTYPE Event SYSTEM "http://127.0.0.1:1/event.dtd">'


@pytest.mark.parametrize("doctype", [BOMB, FILE, EXTERNAL, "<!DOCTYPE Event>"])
def test_a_doctype_is_refused(doctype: str) -> None:
    with pytest.raises(MalformedXml):
        taken(REFERENCE.replace('<?xml version="1.0"?>', doctype))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<",
        b"<Event>",
        b"<Event>&nothing;</Event>",
        b"\xff\xfe<",
        b'<?xml version="1.0" encoding="nonsense"?><Event/>',
        b"<Event/><Event/>",
    ],
)
def test_content_that_is_not_xml_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedXml):
        fox_xml.read(body)


def test_a_document_larger_than_an_event_is_not_parsed() -> None:
    with pytest.raises(errors.EventTooLarge):
        fox_xml.read(b"<" * (limits.EVENT_BYTES_MAX + 1))


@pytest.mark.req("FOX-19")
def test_without_attributes_an_event_is_live_and_of_level_med() -> None:
    event, context = taken(REFERENCE.replace(' Securitylevel="high" Liveness="recovery"', ""))
    assert (event.security_level, context.liveness) == ("med", "live")


TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="￾￿"),
    max_size=9,
)
NAME = TEXT.filter(bool)
NUMBER = st.integers(1, 2**63 - 1)


@st.composite
def fox_events(draw: st.DrawFn) -> Event:
    bundle = draw(TEXT)
    prefix = draw(st.sampled_from(["", "bundle:"]))
    return Event(
        "fox",
        "event",
        {},
        id=EventId("c", draw(st.integers(0, 2**63 - 1)), draw(NUMBER), draw(NUMBER)),
        source="c",
        node="c",
        version=draw(TEXT),
        mask=1,
        security_level=draw(st.sampled_from(["low", "med", "high"])),
        bundle=bundle,
        bundle_number=draw(NUMBER) if bundle else 0,
        time_constraint_ms=draw(st.just(0) | NUMBER),
        merge_scheme=draw(TEXT),
        depends=tuple(prefix + text for text in draw(st.lists(TEXT, max_size=3))),
        application=tuple(draw(st.lists(TEXT, max_size=3))),
        summary=draw(TEXT),
    )


@given(fox_events(), st.sampled_from(["live", "recovery"]))
def test_carried_fields_survive_a_round_trip(event: Event, liveness: str) -> None:
    context = FoxContext("a stream of its own", liveness, "2")
    assert taken(fox_xml.write(event, context)) == (event, context)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", "text"),
        ("id", None),
        ("bundle_number", 0),
        ("depends", ("a", "bundle:b")),
    ],
)
def test_an_unrepresentable_value_is_refused(field: str, value: Any) -> None:
    with pytest.raises(NotRepresentable) as caught:
        fox_xml.write(EXPECTED._replace(**{field: value}), FoxContext("quotes"))
    assert caught.value.field == field


def test_a_control_character_is_not_representable() -> None:
    with pytest.raises(NotRepresentable):
        fox_xml.write(EXPECTED._replace(summary="\x01"), FoxContext("quotes"))
    event = EXPECTED._replace(summary="a\r\nb")
    assert taken(fox_xml.write(event, FoxContext("quotes")))[0].summary == "a\r\nb"


def test_an_event_of_another_stream_or_client_is_refused() -> None:
    found = fox_xml.read(REFERENCE.encode())
    assert fox_xml.require_origin(found, stream="quotes", client="fox") == found.event
    for stream, client in (("other", "fox"), ("quotes", "other")):
        with pytest.raises(errors.InvalidField):
            fox_xml.require_origin(found, stream=stream, client=client)
