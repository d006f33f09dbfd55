"""The embedded Redis: how it is started. It carries only messages that may be lost, so nothing is
saved. Plain module.
"""

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from eventhub.base.guarded_process import Command
from eventhub.supervisor import programs

SOCKET = "redis.sock"
PING_TIMEOUT_S = 1.0
MEMORY_MAX = "256mb"  # messages are small; beyond it Redis refuses writes


class Redis(NamedTuple):
    """A Redis server with its socket in `sockets`."""

    sockets: Path

    @property
    def socket(self) -> Path:
        return self.sockets / SOCKET

    def url(self) -> str:
        return f"unix://{self.socket}"

    def server(self, env: Mapping[str, str]) -> Command:
        options = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "save": "",
            "appendonly": "no",
            "daemonize": "no",
            "loglevel": "warning",
            "hz": "1",  # background tasks a second; ten by default
            "dir": str(self.sockets),
            "maxmemory": MEMORY_MAX,
            "maxmemory-policy": "noeviction",
        }
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        return Command("redis", (str(programs.redis_server()), *words), env, grace_s=2.0)

    def is_ready(self) -> bool:
        """Return whether it answers PING; without its client library, which takes a tenth of the
        start and 10 MB of the supervisor's memory.
        """
        if not self.socket.exists():
            return False
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(PING_TIMEOUT_S)
                connection.connect(str(self.socket))
                connection.sendall(b"PING\r\n")
                return connection.recv(64).startswith(b"+PONG")
        except OSError:
            return False
