"""Events for others are also hidden in counts, sizes, comparisons and pages: a client outside the
audience sees that sequences were used, and nothing else.
"""

import hashlib
from typing import Any

import pytest

from tests.acceptance.eventhub.access.test_audience import put_into
from tests.acceptance.wire import EVENT
from tests.live import Answer, LiveHub, LiveZone

SECRETS = [f"secret-{number}" for number in range(40)]


def hidden(key: str, **fields: Any) -> dict[str, Any]:
    return {**EVENT, "key": key, "audience": ["ops"], **fields}


@pytest.fixture
def outside(zone: LiveZone) -> str:
    """Return the key of a client in no group; the zone's admin is in `ops`; `hid` is keyed."""
    zone.create_stream("hid", keyed=True)
    put_into(zone, "tester", "ops")
    return zone.key("emit:*", "listen:*", client="outsider")


@pytest.mark.req("OIF-32")
def test_sizes_and_times_of_hidden_events_are_not_revealed(
    hub: LiveHub, zone: LiveZone, outside: str
) -> None:
    """Segments report their bytes only to a caller who may see all their events; a dry run counts
    over time only the events that its caller may see.
    """

    def sizes(stream: str, key: str) -> set[bool]:
        """Return whether both routes report bytes."""
        path = f"/v1/streams/{stream}/segments"
        [*_, last] = hub.call("GET", path, key=key).json["items"]
        current = hub.call("GET", f"{path}/current", key=key).json
        return {last["bytes"] is not None, current["bytes"] is not None}

    assert zone.emit("hid", [hidden(key) for key in SECRETS]).status == 200
    assert sizes("hid", zone.admin) == {True}
    assert sizes("hid", outside) == {False}
    assert sizes("hid", zone.key("manage:hid", client="outsider")) == {False}
    assert sizes("system", zone.admin) == {False}, "it has the events of other zones"
    current = hub.operate("GET", f"/v1/streams/system/segments/current?zone={zone.name}").json
    assert current["bytes"] > 0

    def dry_run(stream: str, key: str, last: int) -> dict[str, Any]:
        body = {"stream": stream, "attributes": {}, "last": last}
        answer = hub.call("POST", "/v1/filters/dry-run", body, key=key)
        assert answer.status == 200, answer
        found: dict[str, Any] = answer.json
        assert found["looked_at"] == sum(found["series"]["looked_at"])
        return found

    assert dry_run("hid", zone.admin, 10)["matched"] == 10
    run = dry_run("hid", outside, 10)
    assert (run["looked_at"], run["series"]["begins_at"], run["stopped"]) == (0, None, "end")
    assert run["cursor"]["sequence"] == len(SECRETS)

    hub.new_zone()
    run = dry_run("system", zone.admin, 40)
    begin = f"{run['from']['segment']}:{run['from']['sequence']}"
    path = f"/v1/streams/system/events?from={begin}&limit=100"
    visible = hub.call("GET", path, key=zone.admin).json["events"]
    assert run["looked_at"] == len([one for one in visible if one["sequence"] <= run["to"]]) < 40


@pytest.mark.req("OIF-32")
def test_changes_of_a_hidden_key_are_answered_like_those_of_an_unused_key(
    hub: LiveHub, zone: LiveZone, outside: str
) -> None:
    """The one exception: a PUT with `If-None-Match: *` does not overwrite it, so the client learns
    that the key is in use.
    """

    def ask(method: str, key: str, condition: str | None, by: str = outside) -> Answer:
        name = "If-None-Match" if condition == "*" else "If-Match"
        headers = {} if condition is None else {name: condition}
        body = EVENT if method == "PUT" else None
        path = f"/v1/streams/hid/state/{key}"
        return hub.call(method, path, body, key=by, headers=headers)

    def outcome(answer: Answer) -> tuple[Any, ...]:
        found = answer.json if answer.body else {}
        return answer.status, found.get("code"), found.get("detail"), found.get("current")

    for method, conditions in (
        ("DELETE", (None, "1", "999999")),
        ("PUT", ("1", "999999", None)),  # only the last succeeds
    ):
        for number, condition in enumerate(conditions):
            key = f"{method}-{number}"
            assert zone.emit("hid", hidden(key)).status == 200
            answer = ask(method, key, condition)
            assert outcome(answer) == outcome(ask(method, f"unused-{key}", condition)), condition
            done = answer.status == 201
            assert done == (method == "PUT" and condition is None)
            current = ask("GET", key, None, zone.admin).json["event"]
            assert current.get("audience") == (None if done else ["ops"])

    assert ask("PUT", "DELETE-1", "*").refused(412, "changed")["current"] == 0
    assert ask("GET", "DELETE-1", None, zone.admin).json["event"]["audience"] == ["ops"]
    assert ask("PUT", "nobody-used-it", "*").status == 201
    refused = ask("PUT", "DELETE-0", "*", zone.admin).refused(412, "changed")
    assert refused["current"] == ask("GET", "DELETE-0", None, zone.admin).json["sequence"]
    assert ask("DELETE", "DELETE-0", str(refused["current"]), zone.admin).status == 204


@pytest.mark.req("OIF-32")
def test_pages_of_the_state_reveal_no_hidden_keys_between_them(
    hub: LiveHub, zone: LiveZone, outside: str
) -> None:
    """Each page is full, regardless of hidden keys, and `next` reveals no key's digest."""
    own = [f"own-{number}" for number in range(5)]
    events = [*map(hidden, SECRETS), *({**EVENT, "key": key} for key in own)]
    assert zone.emit("hid", events).status == 200

    def pages(key: str, limit: int) -> list[dict[str, Any]]:
        found, after = [], ""
        while after is not None:
            path = f"/v1/streams/hid/state?limit={limit}&after={after}"
            page = hub.call("GET", path, key=key).json
            found.append(page)
            after = page["next"]
        return found

    found = pages(outside, 1)
    assert [len(page["items"]) for page in found] == [1] * len(own) + [0]
    assert sorted(page["items"][0]["key"] for page in found[:-1]) == own
    assert len(pages(outside, 50)) == 1
    assert [len(page["items"]) for page in pages(zone.admin, 20)] == [20, 20, 5]
    ends = " ".join(page["next"] for page in (*found[:-1], *pages(zone.admin, 7)[:-1]))
    assert not [key for key in (*own, *SECRETS) if hashlib.sha256(key.encode()).hexdigest() in ends]
