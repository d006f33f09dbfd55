"""Pulls of consumer sessions for the acceptance tests."""

from typing import Any

from tests.live import LiveHub, LiveZone

PULL = "/v1/sessions/{}/pull"
WAIT_S = 10.0


def pull(
    zone: LiveZone, name: str = "s", *, web: int = 0, key: str = "", **body: Any
) -> dict[str, Any]:
    """Pull a session over one of the web processes; return the answer."""
    url = zone.hub.web[web].url
    answer = zone.hub.call("POST", PULL.format(name), body, key=key or zone.admin, url=url)
    assert answer.status == 200, answer
    found: dict[str, Any] = answer.json
    return found


def pulled(zone: LiveZone, count: int, name: str = "s", **more: Any) -> list[tuple[int, int]]:
    """Pull events until there are so many; return the sequence and the attempt of each."""
    found: list[tuple[int, int]] = []
    while len(found) < count:
        answer = pull(zone, name, max=count - len(found), **{"wait_s": WAIT_S, **more})
        assert answer["events"], f"{found} of {count} events came in time"
        found += [(event["sequence"], event["attempt"]) for event in answer["events"]]
    return found


def acknowledged(*sequences: int, through: int | None = None) -> dict[str, Any]:
    """Return what a pull has to acknowledge in the stream `orders`."""
    one: dict[str, Any] = {"stream": "orders", "sequences": [*sequences]}
    if through is not None:
        one["sequence"] = through
    return {"acknowledgements": [one]}


def end_visibility(hub: LiveHub, *sequences: int) -> None:
    """Let the time pass for which events are handed out: all of them, or these."""
    hub.sql(
        "UPDATE session_claims SET claimed_until = now() WHERE sequence = ANY (%s) OR %s",
        [*sequences],
        not sequences,
    )


def cursor(zone: LiveZone, name: str = "s") -> tuple[int, list[int]]:
    """Return the stored position of a session in its only stream."""
    [(sequence, above)] = zone.hub.sql(
        "SELECT c.sequence, c.acknowledged FROM session_cursors c JOIN sessions s"
        " ON s.id = c.session_id JOIN zones z ON z.id = s.zone_id"
        " WHERE s.name = %s AND z.name = %s AND s.deleted_at IS NULL",
        name,
        zone.name,
    )
    return sequence, above
