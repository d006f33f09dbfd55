"""A fleet of devices: many registrations, few of which an event matches, and events for them.
Always the same for a seed. Plain.

Registration n: each of the first DEVICES filters on one device, and every event has one of these.
Of ten of the others, eight filter on a device that never sends anything, one on a device with a
load that is rarely reached, and one on the nodes of a group with such a load. So an event matches
one registration, however many there are, and a matcher has to evaluate two of 10,000.
"""

from collections.abc import Iterator
from random import Random
from typing import Any

import orjson

DEVICES = 1_000
GROUPS = 1_000
SEED = 20_261_123
DOMAIN, TYPE = "fleet", "reading"
CALM_MAX = 99.0  # loads of events stay below, those that are asked for are above
SHARE = 10  # of registrations, one for each of the seldom kinds


def filter_of(number: int) -> dict[str, Any]:
    """Return the fields of a registration's filter."""
    if number < DEVICES or number % SHARE > 1:
        return {"domain": DOMAIN, "type": TYPE, "attributes": {"device": f"d{number}"}}
    at = number // SHARE
    load = CALM_MAX + (at // DEVICES % 1_000) / 1_000
    if number % SHARE:
        asked = f'(= device "d{at % DEVICES}")'
    else:
        asked = f'(prefix node "n{at % GROUPS}-")'
    gate = f'(= @domain "{DOMAIN}") (= @type "{TYPE}")'
    return {"language": "predicate", "filter": f"(and {gate} {asked} (> load {load}))"}


def key_of(stream: str, number: int) -> str:
    return f"{stream}-{number}"


def lines(stream: str, numbers: Iterator[int] | range, endpoint: int) -> Iterator[bytes]:
    """Yield lines for the bulk route."""
    for number in numbers:
        fields = {"op": "create", "key": key_of(stream, number), "endpoint": endpoint}
        yield orjson.dumps({**fields, "streams": [stream], **filter_of(number)})


def matching(event: dict[str, Any], registrations: int, first: int = 0) -> int:
    """Return how many of the registrations from `first` on an event matches, computed without a
    matcher.
    """
    attributes = event["attributes"]
    device, group = str(attributes["device"]), str(attributes["node"]).partition("-")[0]
    number = int(device[1:]) if device.startswith("d") else -1
    found = int(first <= number < DEVICES)
    for at, digit in ((number, 1), (int(group[1:]), 0)):
        if at < 0:
            continue
        for place in range(at, registrations // SHARE + 1, DEVICES):
            asked = place * SHARE + digit
            load = CALM_MAX + (place // DEVICES % 1_000) / 1_000
            found += max(DEVICES, first) <= asked < registrations and attributes["load"] > load
    return found


def events(count: int, *, hot: float = 0.0, seed: int = SEED) -> list[dict[str, Any]]:
    """Return so many events; the given share of them has a load above every threshold."""
    random = Random(seed)
    return [_event(random, hot) for _ in range(count)]


def _event(random: Random, hot: float) -> dict[str, Any]:
    load = random.uniform(0, CALM_MAX)
    if random.random() < hot:
        load = random.uniform(CALM_MAX, 100)
    return {
        "domain": DOMAIN,
        "type": TYPE,
        "attributes": {
            "device": f"d{random.randrange(DEVICES)}",
            "node": f"n{random.randrange(GROUPS)}-{random.randrange(10)}",
            "load": round(load, 3),
            "site": f"site-{random.randrange(50)}",
            "severity": random.randrange(8),
            "cleared": random.random() < 0.5,
        },
    }
