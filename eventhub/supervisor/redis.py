"""The embedded Redis: how it is started. It carries only messages that may be lost, so nothing is
saved. SQL module.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import redis

from eventhub.base.guarded_process import Command
from eventhub.supervisor import programs

SOCKET = "redis.sock"
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
        if not self.socket.exists():
            return False
        try:
            with redis.Redis(
                unix_socket_path=str(self.socket), socket_timeout=1.0, socket_connect_timeout=1.0
            ) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False
