"""`manage.py demo`: set the demo up once, then feed its streams until stopped."""

import asyncio
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from eventhub.access.services import ensure_demo
from eventhub.demo.feeder import feed
from eventhub.env import read_env
from eventhub.up.beside import NoDatabaseUrl, require_database


class Command(BaseCommand):
    help = "Feed the streams github and host with real input, through the public API."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--url", default="http://127.0.0.1:8000", help="the hub's base URL")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            require_database()
        except NoDatabaseUrl as error:
            raise CommandError(str(error)) from error
        access = ensure_demo(Path(read_env().data) / "credentials.json")
        asyncio.run(feed(options["url"], access.key, self._say))

    def _say(self, text: str) -> None:
        self.stdout.write(text)
