"""Tenancy: every route, requested for what belongs to another zone or client, by ids,
names and cursors.
"""

import re
from collections.abc import Iterator

import pytest

from tests.acceptance.bad_inputs import routes
from tests.acceptance.tenancy import ACTIONS, NAME, READS, SECRET, WRITES, ZONELESS, Row, Tenants
from tests.acceptance.wire import session
from tests.live import LiveHub
from tests.sink import Sink

SOCKET = frozenset({"WS listen", "WS interest", "WS connect", "WS emit"})
ENDLESS = frozenset({"GET /v1/sessions/{session}/events"})  # the answer to who may
JSON_RPC = frozenset({"POST /mcp"})  # refuses with the status 200: delivery/test_mcp.py

# What the owner, too, is refused: nothing of the kind is there, or it is in use.
REFUSED = {
    "POST /v1/endpoints/<endpoint>/verify": "no_handshake",
    "GET /v1/streams/plain/events?from=<segment>:1": "segment_mismatch",
    "GET /v1/streams/plain/segments/<segment>/raw": "unknown_segment",
    "POST /v1/streams/<stream>/match-index": "nothing_to_index",
    "GET /v1/jobs/backtest/runs/<run>/files/x.csv": "not_found",
    "POST /v1/jobs/retention/runs/<run>/apply": "unknown_run",
    "POST /v1/zones": "conflict",
    "POST /v1/operators": "conflict",
    "POST /v1/deliveries/<delivery>/skip": "delivery_state",
    "POST /v1/deliveries/<delivery>/discard": "delivery_state",
    **{f"POST /v1/replays/<replay>/{act}": "replay_state" for act in ("pause", "resume", "cancel")},
    "DELETE /v1/registration-groups/<group>": "group_in_use",
    "DELETE /v1/endpoints/<endpoint>": "endpoint_in_use",
}

# of limits: sockets, rates, bytes and backlogs change all the time
_USED = re.compile(rb'("(?:events_per_s|stored_bytes|sockets|backlog_\w+)":\{[^{}]*"used":)\d+')
# Answers that tell of the whole hub, of the asking itself, or of the present minute.
RESTLESS = (
    "/v1/audit",
    "/v1/operators",
    *("/v1/boot", "/v1/overview", "/v1/storage", "/v1/zones", "/v1/clients/<client>/listeners"),
    *("/v1/streams/<stream>/interest", "/v1/streams/<stream>/closure", "/v1/jobs"),
    *("/v1/filters/dry-run", "/v1/endpoints/<endpoint>/statistics", "/v1/members", "/v1/presence"),
)


@pytest.fixture(scope="module")
def tenants(hub: LiveHub) -> Iterator[Tenants]:
    hub.start_callbacks()
    with Sink().serving() as sink:
        yield Tenants(hub, sink)
    hub.sql("DELETE FROM job_runs")


@pytest.fixture(scope="module")
def before(tenants: Tenants) -> dict[str, bytes]:
    """Return what is shown before any of the requests that are refused."""
    return shown(tenants)


def refused(row: Row, tenants: Tenants, who: str, *, zone: str = "") -> str:
    """Return the leak in the response to a caller without access; "" if there is none."""
    answer = tenants.send(row, who, zone=zone)
    leaked = tenants.leaked(row, who, answer)
    done = answer.status < 400 and not (row.own and not zone)
    return f"{row.route} {row.path} {who} {answer.status} {leaked}" if leaked or done else ""


def test_every_route_has_its_row() -> None:
    rows = {row.route for row in (*READS, *WRITES)}
    assert routes() - rows - ZONELESS - SOCKET - ENDLESS - JSON_RPC == set()
    assert rows & ZONELESS == set()
    assert rows - routes() == set()


async def test_a_socket_tells_nothing_of_another_zone_or_client(tenants: Tenants) -> None:
    marks = tenants.marks
    async with session(tenants.hub, tenants.keys["stranger"]) as socket:
        for asked in (
            {"stream": NAME},
            {"stream": "plain", "registrations": [marks["<registration>"]]},
            {"stream": "plain", "start": {"segment": marks["<segment>"], "sequence": 1}},
        ):
            answer = await socket.ask(**asked)
            assert answer["op"] in ("error", "segment_mismatch"), (asked, answer)
            assert SECRET not in str(answer)
        await socket.say("interest", interest="i", stream=NAME)
        assert (await socket.hear_op("error", "interest"))["op"] == "error"
        await socket.say("emit", stream=NAME, events={"domain": "a", "type": "b"})
        assert (await socket.hear_op("error", "emitted"))["code"] == "unknown_stream"
        await socket.say("connect", session=marks["<sessionname>"])
        assert (await socket.hear_op("error", "connected"))["code"] == "unknown_session"
    async with session(tenants.hub, tenants.keys["peer"]) as socket:
        answer = await socket.ask("plain", registrations=[marks["<registration>"]])
        assert answer["op"] == "error"
        await socket.say("connect", session=marks["<sessionname>"])
        assert (await socket.hear_op("error", "connected"))["code"] == "unknown_session"


def test_the_events_of_a_session_are_refused_to_others(tenants: Tenants) -> None:
    path = f"/v1/sessions/{tenants.marks['<sessionname>']}/events"
    for who in ("stranger", "peer"):
        answer = tenants.hub.call("GET", path, key=tenants.keys[who])
        assert (answer.status, answer.json["code"]) == (404, "unknown_session")


@pytest.mark.usefixtures("before")
def test_another_zone_learns_nothing(tenants: Tenants) -> None:
    wrong = []
    for zone in (tenants.zone.name, ""):
        wrong += [refused(row, tenants, "stranger", zone=zone) for row in (*READS, *WRITES)]
    assert [one for one in wrong if one] == []


@pytest.mark.usefixtures("before")
def test_another_client_of_the_zone_learns_only_what_belongs_to_the_zone(tenants: Tenants) -> None:
    wrong = []
    for row in (*READS, *WRITES):
        if "peer" not in row.may:
            wrong.append(refused(row, tenants, "peer"))
        elif row in READS:
            assert tenants.send(row, "peer").status == 200, row
    assert [one for one in wrong if one] == []


@pytest.mark.usefixtures("before")
@pytest.mark.parametrize("action", ACTIONS)
def test_no_action_implies_another(tenants: Tenants, action: str) -> None:
    wrong = []
    for row in (*READS, *WRITES):
        if action not in row.may:
            wrong.append(refused(row, tenants, action))
        elif row in READS:
            assert tenants.send(row, action).status == 200, row
    assert [one for one in wrong if one] == []


def test_the_requests_of_all_tests_above_changed_nothing(
    tenants: Tenants, before: dict[str, bytes]
) -> None:
    assert shown(tenants) == before


def test_the_owner_is_answered_and_so_the_requests_are_right(tenants: Tenants) -> None:
    """The last of this file: it changes and deletes what the others asked for."""
    for row in (*READS, *WRITES):
        answer = tenants.send(row, "operator" if row.operator else "owner")
        assert answer.status < 400 or answer.json["code"] == REFUSED.get(
            f"{row.route.split()[0]} {row.path}"
        ), (row, answer)


def shown(tenants: Tenants) -> dict[str, bytes]:
    """Return the answers to the owner and the operator about all resources that may change."""
    found = {}
    for row in READS:
        if not row.path.startswith(RESTLESS) and row.path != "/v1/streams":
            answer = tenants.send(row, "operator" if row.operator else "owner")
            found[f"{row.route} {row.path}"] = _USED.sub(rb"\g<1>0", answer.body)
    return found
