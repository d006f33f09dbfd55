"""The command `python -m tests.benchmarks.people STREAM...`: creates a zone, a client, its key and
streams, printed as JSON. It runs once, in a process of its own.
"""

import json
import os
import sys

import django


def main(names: list[str]) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "eventhub.settings")
    django.setup()
    print(json.dumps(make(names)))


def make(names: list[str]) -> dict[str, object]:
    from eventhub.access.grants import Grant
    from eventhub.access.principal import Actor
    from eventhub.accounts import keys, services
    from eventhub.streams.services import put_stream
    from tests.benchmarks.events import CLIENT

    zone = services.create_zone(name="bench")
    client = services.create_client(zone_id=zone.pk, name=CLIENT)
    grants = (Grant("emit", "*"), Grant("listen", "*"))
    issued = keys.issue_key(actor=Actor(zone.pk, zone.name, None), client=client, grants=grants)
    streams = {
        name: put_stream(zone_id=zone.pk, zone=zone.name, name=name, policy=policy(name))[0].id
        for name in names
    }
    return {"key": issued.text, "streams": streams}


def policy(name: str) -> dict[str, str]:
    """Return the policy of a stream: a name that ends with a durability has it."""
    durability = name.rpartition(".")[2]
    return {"durability": durability} if durability in ("async", "transient") else {}


if __name__ == "__main__":
    main(sys.argv[1:])
