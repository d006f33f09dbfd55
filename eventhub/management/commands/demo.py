"""`manage.py demo`: set up the demo once, then feed its streams until stopped. Django module."""

import asyncio
import socket
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from eventhub.accounts.services import ensure_demo
from eventhub.base.env import read_env
from eventhub.demo.feeder import DemoTarget, feed
from eventhub.management.command import HubCommand
from eventhub.supervisor.port import listen


class Command(HubCommand):
    help = "Feed the streams github and host with real data, through the public API."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--url", default="http://127.0.0.1:8000", help="the hub's base URL")
        parser.add_argument(
            "--sink-fd", type=int, help="a listening socket for the demo's callbacks, already bound"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        file = Path(read_env().data) / "credentials.json"
        access = ensure_demo(file)
        fd = options["sink_fd"]
        listener = socket.socket(fileno=fd) if fd is not None else listen("127.0.0.1", 0)
        asyncio.run(feed(DemoTarget(options["url"], listener, file), access.key, self.say))
