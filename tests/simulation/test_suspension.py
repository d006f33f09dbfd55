"""Registrations are suspended, resumed and moved between groups while events come, some of them
with the session that they belong to, and the forwarder lags: an event is expected to exactly those
registrations that were awake when it was appended; and a listener that reads all again afterwards
gets the same.

What happens is one row of chances, each step answered before the next, so a small model in Python
says what is right.
"""

import random
from dataclasses import dataclass
from typing import Any

from tests.acceptance.wire import session
from tests.integration.forward_world import eventually
from tests.live import LiveHub, LiveZone

STREAMS = ("orders", "returns", "stock", "bills")
GROUPS = {"": ("north", "south"), "reader": ("east",), "team": ("west",)}  # by owner
OWNERS = {"": {}, "reader": {"session": "reader"}, "team": {"session_group": "team"}}
STEPS = 320
ROUND = 80  # steps, for most of which no forwarder runs
LAG = """
    SELECT count(*) FROM streams s
      JOIN zones z ON z.id = s.zone_id
      JOIN heads h ON h.stream_id = s.id
      LEFT JOIN forwarding f ON f.stream_id = s.id
     WHERE z.name = %s AND h.sequence > 0 AND f.sequence IS DISTINCT FROM h.sequence
"""
WRITTEN = """
    SELECT s.name, d.sequence, d.registrations
      FROM deliveries d JOIN streams s ON s.id = d.stream_id
     WHERE d.endpoint_id = %s ORDER BY 1, 2
"""


@dataclass
class Interest:
    """A registration as the model has it."""

    streams: list[str]
    group: str | None
    suspended: bool
    owner: str = ""


class Model:
    """Does a step at the hub and in itself."""

    def __init__(self, hub: LiveHub, zone: LiveZone) -> None:
        self.hub, self.zone = hub, zone
        self.chance = random.Random(5)
        made = zone.endpoint("https://a.example/hook")
        self.endpoint = made["id"]
        self.do("PATCH", f"/v1/endpoints/{self.endpoint}", {"enabled": False})
        self.live: dict[int, Interest] = {}
        session = self.do("POST", "/v1/sessions", {"name": "reader", "kind": "consumer"})
        team = self.do("POST", "/v1/session-groups", {"name": "team"})
        # what is suspended and resumed as a whole, by name
        self.paths = {
            "reader": f"/v1/sessions/{session['id']}",
            "team": f"/v1/session-groups/{team['id']}",
        }
        for owner, names in GROUPS.items():
            for name in names:
                body = {"name": name, **OWNERS[owner]}
                made = self.do("POST", "/v1/registration-groups", body)
                self.paths[name] = f"/v1/registration-groups/{made['id']}"
        self.asleep: set[str] = set()
        self.events: dict[tuple[str, int], list[int]] = {}  # the registrations of each

    def do(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.hub.call(method, path, body, key=self.zone.admin)
        assert answer.status in (200, 201, 204), answer
        return answer.json if answer.body else None

    def step(self) -> None:
        acts = [self.emit] * 12 + [self.make] * 3 + [self.change] * 8 + [self.toggle_group] * 6
        self.chance.choice([*acts, self.end])()

    def emit(self) -> None:
        name = self.chance.choice(STREAMS)
        answer = self.zone.emit(name, {"domain": "shop", "type": "order.placed"})
        awake = [
            registration
            for registration, one in self.live.items()
            if name in one.streams
            and not one.suspended
            and not {one.group, one.owner} & self.asleep
        ]
        self.events[name, answer.json["ranges"][0]["first"]] = sorted(awake)

    def make(self) -> None:
        owner = self.chance.choice([*GROUPS])
        one = Interest(
            self.chance.sample(STREAMS, 1),
            self.chance.choice((None, *GROUPS[owner])),
            self.chance.random() < 0.2,
            owner,
        )
        fields = {name: value for name, value in vars(one).items() if name != "owner"}
        body = {**fields, **OWNERS[owner], "endpoint": self.endpoint}
        made = self.do("POST", "/v1/registrations", body)
        self.live[made["id"]] = one

    def change(self) -> None:
        if not self.live:
            return
        registration = self.chance.choice(list(self.live))
        one = self.live[registration]
        change: dict[str, Any] = self.chance.choice(
            (
                {"suspended": self.chance.random() < 0.3},
                {"group": self.chance.choice((None, *GROUPS[one.owner]))},
                {"streams": self.chance.sample(STREAMS, self.chance.choice((1, 1, 2)))},
            )
        )
        self.live[registration] = Interest(**{**vars(one), **change})
        self.do("PATCH", f"/v1/registrations/{registration}", change)

    def toggle_group(self) -> None:
        several = [*self.asleep] * 2  # none stays asleep for long
        name = self.chance.choice([*self.paths, *sorted(several)])
        self.asleep ^= {name}
        change = {"suspended": name in self.asleep}
        assert self.do("PATCH", self.paths[name], change)["suspended"] == (name in self.asleep)

    def end(self) -> None:
        if self.live:
            registration = self.chance.choice(list(self.live))
            del self.live[registration]
            self.do("DELETE", f"/v1/registrations/{registration}")


async def test_a_suspended_registration_gets_nothing_however_late_the_forwarder_is(
    hub: LiveHub, zone: LiveZone
) -> None:
    for name in STREAMS:
        zone.create_stream(name)
    model = Model(hub, zone)
    hub.start_callbacks()
    for number in range(STEPS):
        model.step()
        if number % ROUND == 5:
            for process in hub.forwarders:
                process.kill()
        elif number % ROUND == ROUND - 25:
            hub.start_callbacks()
    hub.start_callbacks()
    eventually(lambda: hub.sql(LAG, zone.name) == [(0,)], "all is matched", 60.0)
    written = {
        (name, place): registrations
        for name, place, registrations in hub.sql(WRITTEN, model.endpoint)
    }
    expected = {
        place: registrations for place, registrations in model.events.items() if registrations
    }
    assert written == expected
    assert len(expected) > 20
    assert any(not registrations for registrations in model.events.values())

    awake = [registration for registration, one in model.live.items() if "orders" in one.streams]
    received = [(at[1], [id for id in ids if id in awake]) for at, ids in expected.items()
            if at[0] == "orders" and set(ids) & set(awake)]  # fmt: skip
    assert received
    async with session(hub, zone.admin) as reader:
        await reader.listen("orders", start="oldest", registrations=awake)
        events = await reader.events(len(received))
        assert await reader.nothing_waits()
    assert [(one["sequence"], one["registrations"]) for one in events] == received
