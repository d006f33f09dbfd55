"""`python -m eventhub.demo.watch STREAM`: print the events of a stream, one line each. Plain
module.
"""

import argparse
import asyncio
import contextlib
import json
import sys
from pathlib import Path

from eventhub_client.remote import HubClient
from eventhub_client.types import Delivered

from eventhub.base.env import read_env


def line(delivered: Delivered) -> str:
    """Format the event's sequence, domain, type and attributes."""
    event = delivered.event
    attributes = " ".join(f"{name}={value}" for name, value in event["attributes"].items())
    return f"{delivered.sequence:>8}  {event['domain']}:{event['type']}  {attributes}"


async def watch(url: str, key: str, stream: str) -> None:
    async with HubClient(url, key) as hub:
        async for delivered in hub.listen(stream):
            sys.stdout.write(line(delivered) + "\n")
            sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(prog="eventhub.demo.watch", description=__doc__)
    parser.add_argument("stream")
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument(
        "--credentials", type=Path, default=Path(read_env().data) / "credentials.json"
    )
    given = parser.parse_args()
    try:
        key = json.loads(given.credentials.read_text())["client"]["key"]
    except FileNotFoundError:
        sys.exit(
            f"{given.credentials} does not exist: start the hub with --demo, or pass --credentials"
        )
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(watch(given.url, key, given.stream))


if __name__ == "__main__":
    main()
