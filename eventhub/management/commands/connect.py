"""`manage.py connect`: runs the connectors, which read other systems and append what they read.
Django module.
"""

import asyncio
import signal
from typing import Any

import uvloop
from django.core.management.base import BaseCommand

from eventhub.base.env import Env
from eventhub.preflight import settings_or_exit
from registrations.connectors.process import ConnectSettings, connect
from registrations.endpoints.addresses import parse_allowed


class Command(BaseCommand):
    help = (
        "Run the connectors, which read the tables of clients and append what they read, until"
        " SIGTERM. Of several such processes one works; another one takes over within seconds."
    )
    requires_system_checks = ()

    def handle(self, **options: Any) -> None:
        env = settings_or_exit()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_until_stopped(env))


async def _until_stopped(env: Env) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    settings = ConnectSettings(
        env.database_url,
        env.database_direct_url,
        (env.secret_key, *env.secret_key_fallbacks),
        parse_allowed(env.callback_allow),
        env.mark_url,
    )
    await connect(settings, stop=stop)
