"""`manage.py web`: one web process, on a port or on a socket inherited from the supervisor.
Django module.
"""

import logging
import resource
from pathlib import Path
from typing import Any

import uvicorn
from django.core.management.base import BaseCommand, CommandParser

from eventhub.base import limits
from eventhub.preflight import settings_or_exit
from eventhub.web.quick_protocol import QuickHttpProtocol
from eventhub.web.server import HubServer
from eventhub.web.websocket import HubWebSocketProtocol


class Command(BaseCommand):
    help = "Run one web process: hot routes, websockets, management API."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument("--fd", type=int, help="a listening socket, already bound")
        parser.add_argument("--ready", type=Path, help="a file to create when it serves")

    def handle(self, **options: Any) -> None:
        settings_or_exit()
        # uvicorn's lines below warning contain URLs, and URLs contain connection tokens
        logging.getLogger("uvicorn").setLevel("WARNING")
        config = uvicorn.Config(
            "eventhub.asgi:application",
            host=options["host"],
            port=options["port"],
            fd=options["fd"],
            loop="uvloop",
            http=QuickHttpProtocol,
            ws=HubWebSocketProtocol,
            ws_max_size=limits.MESSAGE_BYTES_MAX,
            lifespan="on",
            access_log=False,
            log_config=None,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_connections_max(),
            timeout_keep_alive=limits.KEEP_ALIVE_S,
            timeout_graceful_shutdown=limits.GRACEFUL_S_MAX,
        )
        server = HubServer(config, options["ready"])
        server.run()
        if not server.started:
            raise SystemExit(3)


def _connections_max() -> int:
    """Return how many connections this process has descriptors for, some of them reserved."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return min(limits.CONNECTIONS_PER_PROCESS_MAX, hard - limits.DESCRIPTORS_RESERVED)
