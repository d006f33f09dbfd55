"""A DNS server on loopback to which the look-ups of this process go: the C library resolves names
as it does in production, but from this server.
"""

import ctypes
import errno
import ipaddress
import socket
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from dnslib import AAAA, CNAME, QTYPE, RCODE, RR, A, DNSError
from dnslib.server import BaseResolver, DNSHandler, DNSLogger, DNSServer

LOOK_UP_S = 1  # the C library waits this long for an answer, and asks once
UDP_BYTES_MAX = 512  # of an answer; a longer one is truncated
SILENCE = "silence"  # an answer: there is none


class NameServer(BaseResolver):
    """Answers for the names in `answers`: with the first answer to the first look-up, and so on,
    with the last one from then on. An answer is the addresses, another name (CNAME), or SILENCE.
    Other names do not exist.
    """

    def __init__(self) -> None:
        self.answers: dict[str, Sequence[Sequence[str] | str]] = {}
        self.asked: Counter[tuple[str, str]] = Counter()  # by name and type (A, AAAA)
        self.protocols: set[str] = set()

    def forget(self) -> None:
        """Forget all answers and questions."""
        for each in (self.answers, self.asked, self.protocols):
            each.clear()

    def resolve(self, request: Any, handler: Any) -> Any:
        owner, kind = str(request.q.qname).rstrip(".").lower(), QTYPE[request.q.qtype]
        self.protocols.add(handler.protocol)
        reply = request.reply()
        if owner not in self.answers:
            reply.header.rcode = RCODE.NXDOMAIN
            return reply
        said = self._next(owner, kind)
        while isinstance(said, str):
            if said == SILENCE:
                raise DNSError  # nothing is sent
            reply.add_answer(RR(owner, QTYPE.CNAME, rdata=CNAME(said), ttl=0))
            owner, said = said, self._next(said, kind)
        for address in map(ipaddress.ip_address, said):
            if kind == ("A" if address.version == 4 else "AAAA"):
                data = (A if kind == "A" else AAAA)(tuple(address.packed))
                reply.add_answer(RR(owner, request.q.qtype, rdata=data, ttl=0))
        if handler.protocol == "udp" and len(reply.pack()) > UDP_BYTES_MAX:
            reply.rr, reply.header.tc = [], 1  # asked for again over TCP
        return reply

    def _next(self, name: str, kind: str) -> Sequence[str] | str:
        self.asked[name, kind] += 1
        answers = self.answers[name]
        return answers[min(self.asked[name, kind], len(answers)) - 1]


class _Handler(DNSHandler):
    def handle(self) -> None:
        if self.server.socket_type == socket.SOCK_DGRAM:
            super().handle()
            return
        self.protocol = "tcp"
        stream = self.request.makefile("rb")
        while len(length := stream.read(2)) == 2:  # the questions about both families
            reply = self.get_reply(stream.read(int.from_bytes(length)))
            self.request.sendall(len(reply).to_bytes(2) + reply)


@contextmanager
def name_server() -> Iterator[NameServer]:
    """Run a server over UDP and TCP, and direct the look-ups of this process to it."""
    server = NameServer()
    udp, tcp = _on_one_port(server)
    port = udp.server.server_address[1]
    look_up = socket.getaddrinfo

    def look_up_here(*args: Any, **named: Any) -> Any:
        _direct_thread_to(port)
        return look_up(*args, **named)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", look_up_here)
        for each in (udp, tcp):
            each.start_thread()
        try:
            yield server
        finally:
            for each in (udp, tcp):
                each.stop()
                each.server.server_close()


def _on_one_port(server: NameServer) -> tuple[DNSServer, DNSServer]:
    """Return servers over UDP and TCP. A free port of UDP may be in use for TCP: then another one
    is tried.
    """
    quiet = DNSLogger("-request,-reply,-truncated,-error")
    at = {"address": "127.0.0.1", "logger": quiet, "handler": _Handler}
    while True:
        udp = DNSServer(server, port=0, **at)
        try:
            return udp, DNSServer(server, port=udp.server.server_address[1], tcp=True, **at)
        except OSError as error:
            udp.server.server_close()
            if error.errno != errno.EADDRINUSE:
                raise


class _Address(ctypes.Structure):
    """`struct sockaddr_in` of the C library."""

    _fields_ = (
        ("family", ctypes.c_ushort),
        ("port", ctypes.c_ushort),
        ("address", ctypes.c_uint),
        ("zero", ctypes.c_char * 8),
    )


class _ResolverState(ctypes.Structure):
    """The start of `struct __res_state`, of which every thread has one (resolv.h)."""

    _fields_ = (
        ("retrans_s", ctypes.c_int),
        ("retry", ctypes.c_int),
        ("options", ctypes.c_ulong),
        ("servers_count", ctypes.c_int),
        ("servers", _Address * 3),
    )


def _direct_thread_to(port: int) -> None:
    library = ctypes.CDLL(None)
    library.__res_init()
    library.__res_state.restype = ctypes.POINTER(_ResolverState)
    state = library.__res_state().contents
    loopback = struct.unpack("=I", socket.inet_aton("127.0.0.1"))[0]
    state.servers[0] = _Address(socket.AF_INET, socket.htons(port), loopback)
    state.servers_count, state.retrans_s, state.retry = 1, LOOK_UP_S, 1
