"""Event types: declaration, validation, evolution (RDY-12, 13, 15, OIF-12, FOX-05, FOX-20)."""

from typing import Any
from urllib.parse import quote

import pytest

from tests.acceptance.wire import session, until
from tests.live import Answer, LiveHub, LiveZone

ALARM = {
    "type": "object",
    "required": ["Priority"],
    "properties": {
        "Priority": {"type": "integer", "minimum": 1, "maximum": 5},
        "acknowledged": {"type": "boolean"},
        "origin": {"type": "string", "readOnly": True},
    },
}
SITE = {"type": "object", "required": ["site"], "properties": {"site": {"type": "string"}}}


def declare(zone: LiveZone, type: str, schema: Any, **more: Any) -> Answer:
    return zone.hub.call(
        "PUT", f"/v1/types/ready/{type}", {"schema": schema, **more}, key=zone.admin
    )


async def declared(zone: LiveZone, type: str, schema: Any, **more: Any) -> dict[str, Any]:
    """Declare a version, and wait until both processes know it: at most a second."""
    answer = declare(zone, type, schema, **more)
    assert answer.status == 201, answer
    found: dict[str, Any] = answer.json
    for web in range(len(zone.hub.web)):
        probe = event(type, str(int(found["version"]) + 1))
        reason = f"the type has the versions 1 to {found['version']}"
        await until(lambda: emit(zone, probe, web=web).json.get("reason") == reason)  # noqa: B023
    return found


def event(type: str, version: str = "", /, **attributes: Any) -> dict[str, Any]:
    given = {"version": version} if version else {}
    return {"domain": "ready", "type": type, "attributes": attributes, **given}


def emit(zone: LiveZone, *events: dict[str, Any], web: int = 0) -> Answer:
    return zone.emit("alarms", list(events), url=zone.hub.web[web].url)


def last(zone: LiveZone) -> int:
    found: int = zone.hub.call("GET", "/v1/streams/alarms", key=zone.admin).json["last"]
    return found


@pytest.mark.req("RDY-12")
async def test_a_missing_required_field_is_named(zone: LiveZone) -> None:
    zone.create_stream("alarms")
    header = {"required": ["name"], "properties": {"priority": {"maximum": 10}}}
    await declared(zone, "MyAlarm", ALARM, header=header)
    fine = {**event("MyAlarm", Priority=3), "name": "n"}
    bad: list[tuple[dict[str, Any], str]] = [
        ({**event("MyAlarm"), "name": "n"}, "attributes.Priority"),
        (event("MyAlarm", Priority=3), "name"),
        ({**fine, "priority": 11}, "priority"),
    ]
    for web, (one, field) in enumerate([*bad, bad[0]]):
        problem = emit(zone, fine, one, web=web % 2).refused(422, "type_violation")
        assert problem["position"] == {"index": 1, "field": field}
        assert problem["reason"]
    assert last(zone) == 0, "a request is refused whole"
    assert emit(zone, fine, {**fine, "priority": 10}).status == 200


@pytest.mark.req("RDY-12")
@pytest.mark.req("OIF-12")
async def test_undeclared_types_are_accepted_unless_the_stream_refuses_them(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("alarms")
    zone.create_stream("strict", undeclared="refuse")
    never = {**event("Never"), "attributes": {"unheardOf": {"deep": 7}}}
    async with session(hub, zone.admin) as reader:
        await reader.listen("alarms", attributes={"unheardOf.deep": 7})
        assert emit(zone, never).status == 200
        [received] = await reader.events(1)
    assert received["event"]["attributes"] == never["attributes"]
    problem = zone.emit("strict", [never]).refused(422, "undeclared_type")
    assert problem["position"] == {"index": 0, "field": "type"}
    await declared(zone, "Never", {})
    assert zone.emit("strict", [never]).status == 200


@pytest.mark.req("RDY-13")
async def test_an_event_of_a_subtype_satisfies_its_parent_too(zone: LiveZone) -> None:
    zone.create_stream("alarms")
    declare(zone, "Sub", SITE, parent="MyAlarm").refused(404, "unknown_type")
    await declared(zone, "MyAlarm", ALARM)
    await declared(zone, "Sub", SITE, parent="MyAlarm")
    await declared(zone, "SubSub", {"required": ["rack"]}, parent="Sub")
    whole = {"Priority": 2, "site": "Basel", "rack": 7}
    assert emit(zone, event("SubSub", **whole)).status == 200
    assert emit(zone, event("Sub", Priority=2, site="Basel")).status == 200
    for type, missing in (("Sub", "Priority"), ("Sub", "site"), ("SubSub", "Priority")):
        given = {name: value for name, value in whole.items() if name != missing}
        problem = emit(zone, event(type, **given)).refused(422, "type_violation")
        assert problem["position"]["field"] == f"attributes.{missing}"
    declare(zone, "MyAlarm", ALARM, parent="SubSub", evolution="none").refused(
        400, "invalid_schema"
    )


@pytest.mark.req("RDY-15")
async def test_a_type_gets_an_optional_field_while_it_is_in_use(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("alarms")
    await declared(zone, "MyAlarm", ALARM)
    wider = {**ALARM, "properties": {**ALARM["properties"], "site": {"type": "string"}}}  # type: ignore[dict-item]
    async with session(hub, zone.admin, web=1) as reader:
        await reader.listen("alarms", domain="ready", type="MyAlarm", attributes={"Priority": 3})
        assert emit(zone, event("MyAlarm", Priority=3)).status == 200
        second = await declared(zone, "MyAlarm", wider)
        assert (second["version"], second["latest_version"]) == ("2", "2")
        for one in (
            event("MyAlarm", Priority=3),
            event("MyAlarm", "1", Priority=3),
            event("MyAlarm", "2", Priority=3, site="Basel"),
        ):
            assert emit(zone, one).status == 200
        emit(zone, event("MyAlarm", "2", Priority=3, site=5)).refused(422, "type_violation")
        assert emit(zone, event("MyAlarm", "1", Priority=3, site=5)).status == 200
        received = await reader.events(5)
    assert [one["event"]["version"] for one in received] == ["1", "2", "1", "2", "1"]


@pytest.mark.req("RDY-15")
async def test_an_incompatible_version_is_refused_with_its_breaking_changes(zone: LiveZone) -> None:
    zone.create_stream("alarms")
    first = await declared(zone, "MyAlarm", ALARM)
    broken = {**ALARM, "required": ["Priority", "site"]}
    problem = declare(zone, "MyAlarm", broken).refused(409, "incompatible_type")
    assert problem["breaks"] == ["attributes.site: is required now"]
    again = declare(zone, "MyAlarm", dict(reversed(ALARM.items())))
    assert (again.status, again.json) == (200, first)
    second = await declared(zone, "MyAlarm", broken, evolution="none")
    assert second["version"] == "2"
    emit(zone, event("MyAlarm", Priority=3)).refused(422, "type_violation")
    assert emit(zone, event("MyAlarm", "1", Priority=3)).status == 200


@pytest.mark.req("FOX-05")
async def test_a_value_out_of_its_declared_range_is_refused(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("alarms")
    made = await declared(zone, "MyAlarm", ALARM)
    assert made["immutable"] == ["origin"]
    for value, status in ((0, 422), (1, 200), (5, 200), (6, 422), (True, 422), ("3", 422)):
        assert emit(zone, event("MyAlarm", Priority=value)).status == status, value
    for value, status in ((True, 200), (False, 200), (1, 422), ("true", 422)):
        given = event("MyAlarm", Priority=3, acknowledged=value)
        assert emit(zone, given).status == status, value


@pytest.mark.req("FOX-05")
async def test_a_copy_that_changes_an_immutable_property_is_refused(
    hub: LiveHub, zone: LiveZone
) -> None:
    """A copy names its original: by its cause, or by an id that the stream has stored."""
    for name in ("alarms", "state"):
        zone.create_stream(name, keyed=name == "state")
    await declared(zone, "MyAlarm", ALARM)
    sent = {**event("MyAlarm", Priority=3, origin="Basel"), "id": {"incarnation": 1, "sequence": 1}}
    named = {**sent, "id": "alarm 17"}
    first = emit(zone, sent, named).json["ranges"][0]
    cause = f"alarms:{first['segment']}:{first['first']}"
    written = f"alarms:{first['segment'].upper()}:0{first['first']}"  # another form of the same
    blind = zone.key("emit:*", client="blind")

    def copied(base: dict[str, Any], key: str = "", **changed: Any) -> Answer:
        attributes = {**base["attributes"], **changed}
        attributes = {name: value for name, value in attributes.items() if value is not None}
        copy = {**base, "attributes": attributes}
        return zone.hub.call("POST", "/v1/streams/alarms/events", [copy], key=key or zone.admin)

    whole = event("MyAlarm", **sent["attributes"])
    for base in (sent, named, *({**whole, "cause": one} for one in (cause, written))):
        for origin in ("Bern", None):
            problem = copied(base, origin=origin).refused(422, "immutable_property")
            assert problem["position"] == {"index": 0, "field": "attributes.origin"}
    state = {**event("MyAlarm", Priority=3, origin="Bern"), "cause": cause}
    put = zone.hub.call("PUT", "/v1/streams/state/state/a", state, key=zone.admin)
    assert put.refused(422, "immutable_property")["position"] == {"field": "attributes.origin"}
    for id in ({"incarnation": 1, "sequence": 2}, "alarm 18"):
        twice = ({**whole, "id": id}, {**state, "id": id, "cause": ""})
        problem = emit(zone, *twice).refused(422, "immutable_property")
        assert problem["position"] == {"index": 1, "field": "attributes.origin"}
    assert last(zone) == 2, "nothing was stored"

    assert copied(sent, Priority=4).json["duplicates"], "a mutable one may differ in a repeat"
    assert copied({**state, "attributes": sent["attributes"]}, Priority=4).status == 200
    assert copied(state, blind).status == 200, "who may not see the original learns nothing of it"
    assert copied(sent, blind).status == 200
    copied(sent, blind, origin="Bern").refused(422, "immutable_property")  # its own event
    assert copied({**state, "cause": f"a\0b:{cause}"}).status == 200, "NUL is in no position"
    assert copied({**state, "cause": cause.replace(":", "\0:", 1)}).status == 200
    effect = {**state, "type": "OtherAlarm"}
    assert copied(effect).status == 200, "the effect of an event is no copy of it"
    assert copied({**state, "cause": cause[:-1] + "9"}).status == 200, "there is no such event"


@pytest.mark.req("FOX-20")
async def test_listeners_are_notified_of_a_newer_version(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("alarms")
    await declared(zone, "MyAlarm", ALARM)
    assert emit(zone, event("MyAlarm", Priority=1)).status == 200
    async with session(hub, zone.admin) as live, session(hub, zone.admin, web=1) as late:
        await live.listen("alarms")
        assert emit(zone, event("MyAlarm", Priority=1)).status == 200
        [before] = await live.events(1)
        assert "latest_version" not in before
        await declared(zone, "MyAlarm", {"required": ["Priority"]})
        assert emit(zone, event("MyAlarm", "1", Priority=1), event("MyAlarm", Priority=1)).json
        old, new = await live.events(2)
        await late.listen("alarms", start="oldest")
        replayed = await late.events(4)
    assert (old["event"]["version"], old["latest_version"]) == ("1", "2")
    assert (new["event"]["version"], new.get("latest_version")) == ("2", None)
    assert [one.get("latest_version") for one in replayed] == ["2", "2", "2", None]
    kept = hub.call("GET", "/v1/types/ready/MyAlarm/1", key=zone.admin).json
    assert (kept["schema"], kept["latest_version"]) == (ALARM, "2")


async def test_a_type_with_a_slash_is_declared_as_it_is_emitted(zone: LiveZone) -> None:
    """Such a type could be emitted, but no path led to its definition."""
    zone.create_stream("strict", undeclared="refuse")
    names = (("a/b", "c"), ("a", "b/c"), ("a%2Fb", "c"), ("https://x.example/y", "made/it 100%"))
    for number, (domain, type) in enumerate(names):
        path = f"/v1/types/{quote(domain, safe='')}/{quote(type, safe='')}"
        schema = {"required": [f"n{number}"]}
        answer = zone.hub.call("PUT", path, {"schema": schema}, key=zone.admin)
        assert answer.status == 201, answer
        assert (answer.json["domain"], answer.json["type"]) == (domain, type)
        shown = zone.hub.call("GET", f"{path}/1", key=zone.admin)
        assert (shown.json["type"], shown.json["schema"]["required"]) == (type, [f"n{number}"])
        event = {"domain": domain, "type": type, "attributes": {f"n{number}": 1}}
        await until(lambda event=event: zone.emit("strict", event).status == 200)  # type: ignore[misc]
        zone.emit("strict", {**event, "attributes": {}}).refused(422, "type_violation")
    listed = zone.hub.call("GET", "/v1/types", key=zone.admin).json["items"]
    assert {(one["domain"], one["type"]) for one in listed} == set(names)


async def test_types_of_zones_are_separate(hub: LiveHub, zone: LiveZone) -> None:
    other = hub.new_zone()
    for one in (zone, other):
        one.create_stream("alarms")
    await declared(zone, "MyAlarm", ALARM)
    assert emit(other, event("MyAlarm", Priority="high")).status == 200
    hub.call("GET", "/v1/types/ready/MyAlarm", key=other.admin).refused(404, "unknown_type")
    assert hub.call("GET", "/v1/types", key=other.admin).json["items"] == []


async def test_types_are_listed_and_changed_under_conditions(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("alarms")
    names = ["resource group state", "a.b", "Ü"]
    for name in names:
        path = f"/v1/types/d/{name}".replace(" ", "%20").replace("Ü", "%C3%9C")
        assert hub.call("PUT", path, {"schema": {}}, key=zone.admin).status == 201
    page = hub.call("GET", "/v1/types?limit=2", key=zone.admin).json
    rest = hub.call("GET", f"/v1/types?after={page['next']}", key=zone.admin).json
    assert [item["type"] for item in page["items"] + rest["items"]] == names
    assert rest["next"] is None
    path = "/v1/types/d/a.b"
    shown = hub.call("GET", path, key=zone.admin)
    tag = shown.headers["etag"]
    wider = {"schema": {"title": "T"}}
    changed = hub.call("PUT", path, wider, key=zone.admin, headers={"If-Match": tag})
    assert (changed.status, changed.json["version"]) == (201, "2")
    stale = hub.call("PUT", path, {"schema": {}}, key=zone.admin, headers={"If-Match": tag})
    problem = stale.refused(412, "changed")
    assert f'"{problem["current"]}"' == changed.headers["etag"]
    reader = zone.key("listen:*", client="reader")
    assert hub.call("GET", path, key=reader).json["version"] == "2"
    hub.call("PUT", path, {"schema": {}}, key=reader).refused(403, "forbidden")
    hub.call("PUT", "/v1/types/d/a%00b", {"schema": {}}, key=zone.admin).refused(
        400, "invalid_name"
    )
    hub.call("GET", "/v1/types/d/a.b/3", key=zone.admin).refused(404, "unknown_type")


async def test_a_declaration_is_announced_in_system(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("alarms")
    async with session(hub, zone.admin) as reader:
        await reader.listen("system", type="type.declared")
        answer = declare(zone, "MyAlarm", ALARM)
        [announced] = await reader.events(1)
    attributes = announced["event"]["attributes"]
    assert attributes == {
        "by": attributes["by"],
        "zone": zone.name,
        "domain": "ready",
        "type": "MyAlarm",
        "version": "1",
    }
    assert answer.headers["eventhub-caused"] == f"{announced['sequence']}-{announced['sequence']}"


async def test_no_event_is_checked_for_long(zone: LiveZone) -> None:
    zone.create_stream("alarms")
    asked: dict[str, Any] = {"items": {"allOf": [{"minimum": 0}] * 300}}
    await declared(zone, "Costly", {"properties": {"a": asked}})
    pattern = {"properties": {"a": {"pattern": "(?:[01]*1){300}2"}}}
    await declared(zone, "Slow", pattern)
    few, many = event("Costly", a=[1] * 990), event("Slow", a="01011" * 10_000)
    assert emit(zone, few).status == 200
    problem = emit(zone, few, many).refused(422, "type_too_costly")
    assert problem["position"] == {"index": 1, "field": "attributes"}
    assert emit(zone, *[few] * 10).status == 200
    assert emit(zone, *[few] * 100).refused(422, "type_too_costly")["position"]["index"] > 10
    path = "/v1/streams/apps/state/a"
    zone.create_stream("apps", keyed=True)
    zone.hub.call("PUT", path, many, key=zone.admin).refused(422, "type_too_costly")
    emit(zone, event("Slow", a="01011" * 10)).refused(422, "type_violation")


async def test_a_failure_of_many_alternatives_is_reported_fast(zone: LiveZone) -> None:
    """A reason for each value in each way would be hundreds of megabytes."""
    zone.create_stream("alarms")
    ways: dict[str, Any] = {"anyOf": [{"items": {"minimum": 5}}] * 15}
    await declared(zone, "Ways", {"properties": {"a": ways}})
    problem = emit(zone, event("Ways", a=[1] * 990)).refused(422, "type_violation")
    assert problem["position"] == {"index": 0, "field": "attributes.a"}
    assert problem["reason"] == "it does not satisfy `anyOf` of the definition"


def test_a_definition_of_unbounded_cost_is_refused(zone: LiveZone) -> None:
    texts = ["x" * 3 + str(n) for n in range(500)]
    refused = [
        {"unevaluatedProperties": False},
        {"items": {"unevaluatedItems": False}},
        {"allOf": [{"pattern": str(n)} for n in range(101)]},
        {"$defs": {"a": {"enum": texts}}, "allOf": [{"$ref": "#/$defs/a"}] * 100},
    ]
    for schema in refused:
        declare(zone, "None", schema).refused(400, "invalid_schema")


@pytest.mark.req("RDY-15")
async def test_a_version_may_not_constrain_fields_that_are_sent_already(zone: LiveZone) -> None:
    """By name, by a pattern, by a subtype, by a parent, or because it is the header's."""
    patterned = {"patternProperties": {"^x": {"type": "integer"}}}
    assert declare(zone, "Patterned", patterned).status == 201
    named = {**patterned, "properties": {"xa": {"type": "string"}}}
    text, number = ({"properties": {"a": {"type": one}}} for one in ("string", "integer"))
    for type, schema in (("Above", {}), ("Below", text), ("Top", text), ("Bottom", {})):
        parent = {"Below": {"parent": "Above"}, "Bottom": {"parent": "Top"}}.get(type, {})
        assert declare(zone, type, schema, **parent).status == 201
    header = {"properties": {"priority": {"maximum": 10}}}
    line = "attributes.a: `type` is only integer now"
    for answer, expected in (
        (declare(zone, "Patterned", named), "attributes.xa: `type` is only string now"),
        (declare(zone, "Above", number), line),
        (declare(zone, "Bottom", number, parent="Top"), line),
        (declare(zone, "Above", {}, header=header), "header.priority: `maximum` is 10 now"),
    ):
        assert answer.refused(409, "incompatible_type")["breaks"] == [expected]
    assert declare(zone, "Above", {"properties": {"b": {"type": "integer"}}}).status == 201
