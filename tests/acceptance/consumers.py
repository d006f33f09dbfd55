"""Consumer sessions for the acceptance tests: created by the API, connected over a websocket."""

import itertools
from typing import Any

from tests.acceptance.wire import Session
from tests.live import Answer, LiveZone

SHOP = {"streams": ["orders"], "domain": "shop"}
_ids = itertools.count(1)


def create_session(
    zone: LiveZone, name: str = "s", *, key: str = "", kind: str = "consumer", **more: Any
) -> dict[str, Any]:
    """Create a session of the key's client."""
    body = {"name": name, "kind": kind, **more}
    answer = zone.hub.call("POST", "/v1/sessions", body, key=key or zone.admin)
    assert answer.status == 201, answer
    made: dict[str, Any] = answer.json
    return made


def create_group(zone: LiveZone, name: str = "g", **more: Any) -> dict[str, Any]:
    """Create a session group of the admin's client."""
    answer = zone.hub.call("POST", "/v1/session-groups", {"name": name, **more}, key=zone.admin)
    assert answer.status == 201, answer
    made: dict[str, Any] = answer.json
    return made


def change(zone: LiveZone, made: dict[str, Any], *, of: str = "sessions", **fields: Any) -> None:
    """Change a session, or `of="session-groups"` a group."""
    answer = zone.hub.call("PATCH", f"/v1/{of}/{made['id']}", fields, key=zone.admin)
    assert answer.status == 200, answer


def consumer(zone: LiveZone, name: str = "s", **more: Any) -> dict[str, Any]:
    """Create a session with a registration of all events of the shop in the stream `orders`."""
    made = create_session(zone, name, **more)
    zone.register({**SHOP, "session": name})
    return made


async def connect(reader: Session, name: str = "s") -> dict[str, Any]:
    """Connect a session; return the hub's message that it is connected."""
    answer = await ask(reader, name)
    assert answer["op"] == "connected", answer
    assert answer["session"] == name
    return answer


async def ask(reader: Session, name: str = "s") -> dict[str, Any]:
    """Request a session; return the hub's answer."""
    await reader.say("connect", session=name)
    return await reader.hear_op("connected", "error")


async def acknowledge(
    reader: Session, *sequences: int, through: int | None = None, name: str = "s"
) -> None:
    """Acknowledge events of the stream `orders`, and wait until that is stored."""
    id = f"ack-{next(_ids)}"
    fields: dict[str, Any] = {} if through is None else {"sequence": through}
    if sequences:
        fields["sequences"] = [*sequences]
    await reader.say("ack", session=name, stream="orders", id=id, **fields)
    answer = await reader.hear_op("acked", "error")
    assert answer == {"op": "acked", "session": name, "stream": "orders", "id": id}


def post_acknowledgements(
    zone: LiveZone, *streams: dict[str, Any], name: str = "s", key: str = "", web: int = 1
) -> Answer:
    """Acknowledge events of a session by a request to the second process, or another one."""
    path = f"/v1/sessions/{name}/acknowledgements"
    url = zone.hub.web[web].url
    return zone.hub.call("POST", path, {"streams": [*streams]}, key=key or zone.admin, url=url)


def acknowledge_by_post(zone: LiveZone, name: str = "s", *, web: int = 1, **given: Any) -> None:
    """Acknowledge events of the stream `orders` in that way, with success."""
    answer = post_acknowledgements(zone, {"stream": "orders", **given}, name=name, web=web)
    assert answer.status == 200, answer


async def numbers(reader: Session, count: int) -> list[int]:
    """Receive the next events; return their sequences."""
    return [event["sequence"] for event in await reader.events(count)]
