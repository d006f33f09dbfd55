"""The hub's port, bound by the supervisor so that it stays open while web processes are replaced.
Plain module.
"""

import errno
import socket

from eventhub.base import limits

BACKLOG = 2048


class PortBusy(Exception):
    """The port is not available; the message says why and what to do."""


def listen(host: str, port: int) -> socket.socket:
    """Return a listening TCP socket; port 0 takes a free one. Accepted connections inherit its
    options. Raises PortBusy.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except socket.gaierror as error:
        raise PortBusy(f"cannot listen on {host}: {error.strerror}") from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.setsockopt(
            socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, limits.UNSENT_TCP_TIMEOUT_MS
        )
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise PortBusy(
                f"port {port} on {host} is in use by another program; "
                f"choose another: make run PORT={port + 1}"
            ) from error
        raise PortBusy(f"cannot listen on {host} port {port}: {error.strerror}") from error
    return listener


def local_url(listener: socket.socket) -> str:
    """Return the base URL under which this machine reaches the socket."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        host = "127.0.0.1" if host == "0.0.0.0" else "::1"  # noqa: S104
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
