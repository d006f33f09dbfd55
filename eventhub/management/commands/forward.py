"""`manage.py forward`: one forwarder, which matches events for callbacks and writes deliveries.
Django module.
"""

import asyncio
import signal
from pathlib import Path
from typing import Any

import uvloop
from django.core.management.base import BaseCommand

from delivery.forward.process import ForwarderSettings, forward
from eventhub.base.env import Env
from eventhub.eventlog.archive.reader import archive_of
from eventhub.preflight import settings_or_exit


class Command(BaseCommand):
    help = (
        "Match new events for callbacks and write the deliveries, until SIGTERM. Any number of"
        " forwarders share the streams; the others take over from one that died within three"
        " seconds."
    )
    requires_system_checks = ()

    def handle(self, **options: Any) -> None:
        env = settings_or_exit(secret=False)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_until_stopped(env))


async def _until_stopped(env: Env) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    archive = archive_of(env.archive_url)
    urls = (env.database_url, env.database_direct_url)
    settings = ForwarderSettings(
        *urls, archive, Path(env.data), env.mark_url, env.store_dir, env.quota_bytes
    )
    await forward(settings, stop=stop)
