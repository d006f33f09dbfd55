"""Admin, supplier and consumer sessions: what each kind may do, and what it owns (READY 2)."""

from typing import Any

import pytest

from tests.integration.forward_world import eventually
from tests.live import Answer, LiveZone
from tests.sink import Sink

EVENT = {"domain": "Net", "type": "MyAlarm"}
SUPPLIES = [{"domain": "Net", "type": "MyAlarm"}]
SESSIONS = "/v1/sessions"
GROUPS = "/v1/session-groups"
REGISTRATIONS = "/v1/registrations"


def create(zone: LiveZone, name: str, kind: str, **more: Any) -> Answer:
    """Create a session, by default of the client `tester`; `more` has its settings, and as for
    `call` the `key` and the session that the request acts `through`.
    """
    by = {name: more.pop(name, "") for name in ("key", "through")}
    return call(zone, "POST", SESSIONS, {"name": name, "kind": kind, **more}, **by)


def call(zone: LiveZone, method: str, path: str, body: Any = None, **by: str) -> Answer:
    """Send a request; `by` has the `key`, and the session that it acts `through`."""
    through = by.get("through", "")
    headers = {"EventHub-Session": through} if through else {}
    return zone.hub.call(method, path, body, key=by.get("key") or zone.admin, headers=headers)


def made(answer: Answer) -> dict[str, Any]:
    assert answer.status in (200, 201), answer
    found: dict[str, Any] = answer.json
    return found


def change(zone: LiveZone, path: str, **fields: Any) -> dict[str, Any]:
    return made(call(zone, "PATCH", path, fields))


def consumer(zone: LiveZone, name: str, **more: Any) -> str:
    """Create a consumer session; return its path."""
    return f"{SESSIONS}/{made(create(zone, name, 'consumer', **more))['id']}"


def emitted(zone: LiveZone, stream: str = "alarms") -> int:
    answer = zone.emit(stream, EVENT)
    assert answer.status == 200, answer
    return int(answer.json["ranges"][0]["first"])


def cursors(zone: LiveZone, path: str) -> dict[str, int]:
    """Return a session's positions by stream."""
    query = """SELECT s.name, c.sequence FROM session_cursors c JOIN streams s ON s.id = c.stream_id
                WHERE c.session_id = %s"""
    return dict(zone.hub.sql(query, int(path.rpartition("/")[2])))


def delivered(zone: LiveZone, endpoint: int) -> list[tuple[int, list[int]]]:
    """Return the sequences and registrations of the deliveries to an endpoint."""
    query = "SELECT sequence, registrations FROM deliveries WHERE endpoint_id = %s ORDER BY 1"
    return [(sequence, ids) for sequence, ids in zone.hub.sql(query, endpoint)]


@pytest.fixture
def alarms(zone: LiveZone) -> LiveZone:
    zone.create_stream("alarms")
    return zone


@pytest.mark.req("RDY-01")
def test_each_kind_of_session_does_its_own_work_only(alarms: LiveZone) -> None:
    zone = alarms
    admin = made(create(zone, "boss", "admin"))
    assert (admin["kind"], admin["client"], admin["delivery"]) == ("admin", "tester", None)
    answer = create(zone, "reader", "consumer", through="boss")
    assert answer.status == 201
    assert answer.headers["etag"] == f'"{answer.json["changed"]}"'
    assert create(zone, "writer", "supplier", through="boss", supplies=SUPPLIES).status == 201
    events = "/v1/streams/alarms/events"
    for name, kind in (("reader", "consumer"), ("boss", "admin")):
        refused = call(zone, "POST", events, EVENT, through=name).refused(403, "wrong_session_kind")
        assert (refused["kind"], refused["position"]) == ("supplier", {"field": "EventHub-Session"})
        assert kind in refused["detail"]
    assert call(zone, "POST", events, EVENT, through="writer").status == 200
    body = {"streams": ["alarms"]}
    for name in ("writer", "boss"):
        for request in (("GET", f"{events}?from=oldest"), ("POST", REGISTRATIONS, body)):
            refused = call(zone, *request, through=name).refused(403, "wrong_session_kind")
            assert refused["kind"] == "consumer"
    assert len(call(zone, "GET", f"{events}?from=oldest", through="reader").json["events"]) == 1
    assert made(call(zone, "POST", REGISTRATIONS, body, through="reader"))["session"] == "reader"
    for name in ("writer", "reader"):
        refused = create(zone, "more", "consumer", through=name)
        assert refused.refused(403, "wrong_session_kind")["kind"] == "admin"
    call(zone, "GET", SESSIONS, through="nobody").refused(404, "unknown_session")
    call(zone, "POST", events, EVENT, through="nobody").refused(404, "unknown_session")
    stranger = zone.key("emit:*", client="stranger")
    call(zone, "POST", events, EVENT, through="writer", key=stranger).refused(
        404, "unknown_session"
    )
    listed = call(zone, "GET", SESSIONS, key=stranger).json["items"]
    assert listed == [], "another client's sessions are not found"


@pytest.mark.req("RDY-02")
def test_deleting_a_session_ends_its_registrations_and_groups_in_one_act(
    alarms: LiveZone, sink: Sink
) -> None:
    zone, path = alarms, "/deleted"
    endpoint = zone.endpoint(sink.url(path))["id"]
    made(create(zone, "boss", "admin"))
    reader = consumer(zone, "reader", through="boss")
    other = consumer(zone, "other")
    body = {"streams": ["alarms"], "endpoint": endpoint}
    night = {"name": "night", "session": "reader"}
    group = made(call(zone, "POST", "/v1/registration-groups", night))
    owned = zone.register(
        {**body, "session": "reader"}, {**body, "session": "reader", "group": "night"}
    )
    [kept] = zone.register({**body, "session": "other"})
    emitted(zone)
    [called] = sink.wait(1, path)
    assert called.json["registrations"] == [*(one["id"] for one in owned), kept["id"]]
    assert made(call(zone, "GET", reader))["registrations"] == 2
    assert call(zone, "DELETE", reader, through="boss").status == 204
    emitted(zone)
    [_, called] = sink.wait(2, path)
    assert called.json["registrations"] == [kept["id"]]
    call(zone, "GET", reader).refused(404, "unknown_session")
    for one in owned:
        call(zone, "GET", f"{REGISTRATIONS}/{one['id']}").refused(404, "unknown_registration")
    call(zone, "GET", f"/v1/registration-groups/{group['id']}").refused(404, "unknown_group")
    assert (cursors(zone, reader), cursors(zone, other)) == ({}, {"alarms": 0})
    assert create(zone, "reader", "consumer").status == 201, "its name is free"
    team = f"{GROUPS}/{made(call(zone, 'POST', GROUPS, {'name': 'team'}))['id']}"
    change(zone, other, group="team")
    call(zone, "DELETE", team, through="boss").refused(409, "session_group_in_use")
    change(zone, other, group=None)
    assert call(zone, "DELETE", team, through="boss").status == 204


@pytest.mark.req("RDY-03")
def test_a_supplier_emits_declared_types_only(alarms: LiveZone) -> None:
    zone, path = alarms, "/v1/streams/alarms/events"
    create(zone, "writer", "supplier").refused(400, "missing_field")
    declared = [*SUPPLIES, {"domain": "Mail", "type": "Msg.*"}, {"domain": "Host", "type": "*"}]
    writer = f"{SESSIONS}/{made(create(zone, 'writer', 'supplier', supplies=declared))['id']}"

    def emit(*types: str) -> Answer:
        events = [dict(zip(("domain", "type"), one.split("::"), strict=True)) for one in types]
        return call(zone, "POST", path, events, through="writer")

    assert emit("Net::MyAlarm", "Mail::Msg.New", "Host::cpu").json["ranges"][0]["last"] == 3
    problem = emit("Net::MyAlarm", "Net::Other").refused(422, "type_not_supplied")
    assert (problem["supplies"], problem["supplies_more"]) == (declared, 0)
    assert problem["position"] == {"index": 1, "field": "type"}
    assert "Net::MyAlarm" in problem["detail"]
    emit("Mail::Msg").refused(422, "type_not_supplied")
    assert zone.emit("alarms", {"domain": "Net", "type": "Other"}).json["ranges"][0]["first"] == 4
    change(zone, writer, supplies=[{"domain": "Net", "type": "Other"}])
    accepted: list[Answer] = []

    def is_accepted() -> bool:
        answer = emit("Net::Other")
        accepted.extend([answer] if answer.status == 200 else [])
        return answer.status == 200

    eventually(is_accepted, "the types take effect")
    assert accepted[0].json["ranges"][0]["first"] == 5, "no sequence was used"
    change(zone, writer, suspended=True)
    eventually(lambda: not is_accepted(), "the suspension takes effect")
    emit("Net::Other").refused(409, "session_suspended")
    change(zone, writer, suspended=False)
    eventually(is_accepted, "the resumption takes effect")
    zone.create_stream("kept", keyed=True)
    state = "/v1/streams/kept/state/a"
    call(zone, "PUT", state, EVENT, through="writer").refused(422, "type_not_supplied")
    assert call(zone, "PUT", state, {**EVENT, "type": "Other"}, through="writer").status == 201


@pytest.mark.req("RDY-09")
def test_a_registration_has_one_owner(alarms: LiveZone) -> None:
    zone = alarms
    consumer(zone, "reader")
    consumer(zone, "other")
    made(create(zone, "writer", "supplier", supplies=SUPPLIES))
    made(call(zone, "POST", GROUPS, {"name": "team"}))
    made(call(zone, "POST", "/v1/registration-groups", {"name": "night", "session": "reader"}))
    made(call(zone, "POST", "/v1/registration-groups", {"name": "day"}))
    body = {"streams": ["alarms"]}

    def register(**fields: Any) -> Answer:
        return call(zone, "POST", REGISTRATIONS, {**body, **fields})

    both = register(session="reader", session_group="team").refused(400, "invalid_field")
    assert both["position"] == {"field": "session_group"}
    register(session="nobody").refused(404, "unknown_session")
    register(session="writer").refused(400, "invalid_field")
    register(session_group="nobody").refused(404, "unknown_session_group")
    register(session="other", group="night").refused(409, "other_owner")
    register(session="reader", group="day").refused(409, "other_owner")
    register(group="night").refused(409, "other_owner")
    own = made(register(session="reader", group="night"))
    assert (own["session"], own["session_group"], own["group"]) == ("reader", None, "night")
    shared = made(register(session_group="team"))
    assert (shared["session"], shared["session_group"], shared["group"]) == (None, "team", None)
    path = f"{REGISTRATIONS}/{own['id']}"
    call(zone, "PATCH", path, {"session": "other"}).refused(400, "unknown_field")
    call(zone, "PATCH", path, {"group": "day"}).refused(409, "other_owner")
    moved = change(zone, path, group=None)
    assert (moved["group"], moved["session"]) == (None, "reader")
    for query, ids in (
        ("session=reader", [own["id"]]),
        ("session_group=team", [shared["id"]]),
        ("session=other", []),
    ):
        listed = call(zone, "GET", f"{REGISTRATIONS}?{query}").json["items"]
        assert [one["id"] for one in listed] == ids
    groups = call(zone, "GET", "/v1/registration-groups").json["items"]
    assert [(one["name"], one["session"]) for one in groups] == [("night", "reader"), ("day", None)]


@pytest.mark.req("RDY-05", "RDY-09")
def test_suspending_a_session_suspends_its_registrations_and_retains_their_own_states(
    alarms: LiveZone, sink: Sink
) -> None:
    """The forwarder runs all the time."""
    zone, path = alarms, "/cascade"
    endpoint = zone.endpoint(sink.url(path))["id"]
    reader = consumer(zone, "reader")
    night = made(call(zone, "POST", "/v1/registration-groups", {"name": "n", "session": "reader"}))
    group = f"/v1/registration-groups/{night['id']}"
    body = {"streams": ["alarms"], "endpoint": endpoint}
    mine = {**body, "session": "reader"}
    free, plain, grouped, own = zone.register(
        body, mine, {**mine, "group": "n"}, {**mine, "suspended": True}
    )
    every = [free["id"], plain["id"], grouped["id"]]
    expected = [(emitted(zone), every)]
    assert change(zone, reader, suspended=True)["suspended"]
    expected.append((emitted(zone), [free["id"]]))
    change(zone, group, suspended=True)
    expected.append((emitted(zone), [free["id"]]))
    change(zone, reader, suspended=False)
    expected.append((emitted(zone), [free["id"], plain["id"]]))
    change(zone, group, suspended=False)
    expected.append((emitted(zone), every))
    change(zone, f"{REGISTRATIONS}/{own['id']}", suspended=False)
    expected.append((emitted(zone), [*every, own["id"]]))
    change(zone, reader, suspended=True)
    [late] = zone.register({**mine, "group": "n"})
    expected.append((emitted(zone), [free["id"]]))
    change(zone, reader, suspended=False)
    expected.append((emitted(zone), [*every, own["id"], late["id"]]))
    sink.wait(len(expected), path)
    assert delivered(zone, endpoint) == expected


@pytest.mark.req("RDY-09", "RDY-07")
def test_a_session_with_many_registrations_is_suspended_by_one_row(alarms: LiveZone) -> None:
    zone = alarms
    reader = consumer(zone, "reader")
    for name in ("a", "b"):
        body = {"name": name, "session": "reader"}
        made(call(zone, "POST", "/v1/registration-groups", body))
    item = {"streams": ["alarms"], "session": "reader"}
    zone.register(*({**item, "group": name} for name in ("a", "b") for _ in range(200)))
    since = zone.hub.sql("SELECT pg_current_xact_id()::text::bigint")[0][0]
    change(zone, reader, suspended=True)
    for table, rows in (
        ("suspensions", 1),
        ("registrations", 0),
        ("registration_versions", 0),
        ("registration_groups", 0),
    ):
        query = f"SELECT count(*) FROM {table} WHERE xmin::text::bigint >= %s"
        assert zone.hub.sql(query, since) == [(rows,)], table
    assert change(zone, reader, suspended=True)["suspended"], "repeating it writes nothing"
    query = "SELECT count(*) FROM suspensions WHERE xmin::text::bigint >= %s"
    assert zone.hub.sql(query, since) == [(1,)]


@pytest.mark.req("RDY-08")
def test_the_settings_of_a_session_group_apply_to_its_members(alarms: LiveZone) -> None:
    zone = alarms
    team = f"{GROUPS}/{made(call(zone, 'POST', GROUPS, {'name': 'team', 'window': 7}))['id']}"
    members = [consumer(zone, f"m{at}", group="team", order="priority") for at in range(3)]

    def applied() -> list[tuple[Any, ...]]:
        found = [made(call(zone, "GET", path))["delivery"] for path in members]
        return [(one["quality"], one["order"], one["window"], one["disconnected"]) for one in found]

    assert applied() == [("reliable", "fifo", 7, False)] * 3
    assert made(call(zone, "GET", team))["sessions"] == 3
    options = {"types": ["a", {"domain": "Net", "type": "b.*"}], "hold_ms": 5}
    change(zone, team, quality="best_effort", order="type", order_options=options)
    assert applied() == [("best_effort", "type", 7, False)] * 3
    change(zone, team, disconnected=True)
    assert applied() == [("best_effort", "type", 7, True)] * 3
    left = change(zone, members[0], group=None)
    assert (left["group"], left["delivery"]["order"]) == (None, "priority"), "its own come back"
    assert left["delivery"]["disconnected"] is False


@pytest.mark.req("RDY-08")
def test_members_of_a_group_have_positions_in_the_streams_of_its_registrations(
    alarms: LiveZone,
) -> None:
    zone = alarms
    zone.create_stream("more")
    made(call(zone, "POST", GROUPS, {"name": "team"}))
    first = consumer(zone, "first", group="team")
    emitted(zone)
    [shared] = zone.register({"streams": ["alarms"], "session_group": "team"})
    assert shared["from"]["alarms"]["sequence"] == 1
    assert cursors(zone, first) == {"alarms": 1}
    emitted(zone)
    zone.register({"streams": ["alarms"], "session_group": "team"})
    assert cursors(zone, first) == {"alarms": 1}, "it has one"
    second = consumer(zone, "second")
    assert cursors(zone, second) == {}
    change(zone, second, group="team")
    third = consumer(zone, "third", group="team")
    assert cursors(zone, second) == cursors(zone, third) == {"alarms": 2}
    emitted(zone, "more")
    change(zone, f"{REGISTRATIONS}/{shared['id']}", streams=["alarms", "more"])
    assert cursors(zone, first) == {"alarms": 1, "more": 1}
    assert cursors(zone, second) == {"alarms": 2, "more": 1}
    zone.register({"streams": ["more"], "session": "second"})
    change(zone, second, group=None)
    assert cursors(zone, second) == {"more": 1}, "of its own registrations"


def test_conditions_grants_and_events_of_sessions(alarms: LiveZone) -> None:
    zone = alarms
    zone.create_stream("secret")
    key = zone.key("listen:alarms", client="shop")
    answer = create(zone, "reader", "consumer", key=key)
    reader = f"{SESSIONS}/{answer.json['id']}"
    create(zone, "reader", "consumer", key=key).refused(409, "session_exists")
    stale = {"If-Match": answer.headers["etag"]}
    renamed = call(zone, "PATCH", reader, {"name": "other"}, key=key)
    renamed.refused(400, "unknown_field")
    call(zone, "PATCH", reader, {"kind": "admin"}, key=key).refused(400, "unknown_field")
    changed = made(call(zone, "PATCH", reader, {"window": 5}, key=key))
    late = zone.hub.call("PATCH", reader, {"window": 6}, key=key, headers=stale)
    late.refused(412, "changed")
    same = made(call(zone, "PATCH", reader, {"window": 5}, key=key))
    assert same["changed"] == changed["changed"], "repeating it changes nothing"
    event = call(zone, "GET", f"/v1/streams/system/events/{changed['changed']}").json
    assert event["type"] == "session.changed"
    attributes = event["attributes"]
    assert (attributes["name"], attributes["window"], attributes["by"]["client"]) == (
        *("reader", 5),
        "shop",
    )
    stranger = zone.key("listen:*", client="stranger")
    call(zone, "DELETE", reader, key=stranger).refused(404, "unknown_session")
    body = {"streams": ["secret"], "session": "reader", "client": "shop"}
    made(call(zone, "POST", REGISTRATIONS, body))
    call(zone, "PATCH", reader, {"suspended": True}, key=key).refused(403, "forbidden")
    call(zone, "DELETE", reader, key=key).refused(403, "forbidden")
    made(call(zone, "POST", GROUPS, {"name": "team"}))
    call(zone, "PATCH", reader, {"group": "team"}, key=key).refused(404, "unknown_session_group")
    joined = made(call(zone, "PATCH", reader, {"group": "team"}))
    assert joined["group"] == "team", "a manager of the zone names any group"
    taken = call(zone, "POST", GROUPS, {"name": "team"}, key=key)
    taken.refused(409, "session_group_exists")
    zone.hub.operate("DELETE", f"/v1/clients/tester?zone={zone.name}")
    alone = call(zone, "GET", reader, key=key).json
    assert alone["group"] is None, "the group ended with its client"


def test_sessions_end_with_their_client_and_cursors_with_their_stream(alarms: LiveZone) -> None:
    zone, hub = alarms, alarms.hub
    zone.create_stream("more")
    key = zone.key("listen:*", client="shop")
    reader = f"{SESSIONS}/{made(create(zone, 'reader', 'consumer', key=key))['id']}"
    zone.register({"streams": ["alarms", "more"], "session": "reader"}, key=key)
    assert cursors(zone, reader) == {"alarms": 0, "more": 0}
    deleted = hub.operate("DELETE", f"/v1/clients/shop?zone={zone.name}")
    assert deleted.status == 204, deleted
    assert cursors(zone, reader) == {}
    call(zone, "GET", reader).refused(404, "unknown_session")
    assert call(zone, "GET", SESSIONS).json["items"] == []
