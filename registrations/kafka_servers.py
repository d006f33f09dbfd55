"""Kafka clusters of clients: which URLs are accepted, and whether the addresses of servers are ones
that the zone may reach. Plain module.
"""

import re
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

from eventhub.base import limits
from registrations.endpoints.addresses import (
    CallbackAddresses,
    Resolve,
    ends_in_number,
    is_name,
    plain_address,
    resolved,
)

MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")
_SCHEMES = {"kafka": False, "kafkas": True}  # with TLS?
_URL = re.compile(
    r"(?P<scheme>[a-z]+)://(?:(?P<user>[^@/?#]*)@)?(?P<servers>[^@/?#]+)/?(?:\?(?P<query>[^#]*))?"
)
_SERVER = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\[\]:]+)(?::(?P<port>[0-9]{1,5}))?")
_PORTS = {False: 9092, True: 9093}
_FORM = (
    "Write kafkas://USER:PASSWORD@HOST:PORT,HOST:PORT, or kafka://… without TLS, with ?sasl=… if"
    " need be."
)


class KafkaServer(NamedTuple):
    """A server by which a cluster is found, or which the cluster has named."""

    host: str
    port: int

    @property
    def text(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class KafkaTarget(NamedTuple):
    """The parts of a URL. `user`: empty without authentication."""

    servers: tuple[KafkaServer, ...]
    tls: bool
    mechanism: str
    user: str = ""
    password: str = ""

    @property
    def places(self) -> tuple[KafkaServer, ...]:
        return self.servers


class PrivateServer(Exception):
    """A server leads to an address that the zone may not reach."""


def parse_target(url: str) -> KafkaTarget:
    """Return the parts of the URL of a cluster, with user and password if it has them. Raises
    ValueError with a message that has nothing of the URL.
    """
    return parsed(url, _FORM)


def address_of(url: str) -> str:
    """Return the hosts and ports of a URL with its credentials. Raises ValueError as
    `parse_target`.
    """
    return ",".join(server.text for server in parse_target(url).servers)


async def require_allowed(
    servers: Iterable[KafkaServer], addresses: CallbackAddresses, resolve: Resolve = resolved
) -> None:
    """Check every address that servers lead to: librdkafka may connect to any. Raises
    PrivateServer, and OSError if a name leads nowhere.
    """
    for host, port in servers:
        found = await resolve(host)
        for _, _, _, _, address in islice(found, limits.CALLBACK_ADDRESSES_MAX):
            if not addresses.allowed(str(address[0]), host, port):
                raise PrivateServer(
                    f"{host}:{port} leads to a private or local address, which"
                    " EVENTHUB_CALLBACK_ALLOW does not allow for this zone."
                )


def parsed(url: str, form: str) -> KafkaTarget:
    """Return the parts of a URL, with a user or without. `form`: of a URL, for refusals. Raises
    ValueError as `parse_target`.
    """
    found = _URL.fullmatch(url)
    if found is None or found["scheme"] not in _SCHEMES:
        raise ValueError(f"This is not the URL of a Kafka cluster. {form}")
    tls = _SCHEMES[found["scheme"]]
    texts = found["servers"].split(",")
    if len(texts) > limits.KAFKA_SERVERS_MAX:
        raise ValueError(f"At most {limits.KAFKA_SERVERS_MAX} servers are named; one is enough.")
    user, _, password = (found["user"] or "").partition(":")
    target = KafkaTarget(
        tuple(_server(text, _PORTS[tls], form) for text in texts),
        tls,
        _mechanism(found["query"] or ""),
        unquote(user),
        unquote(password),
    )
    if "\0" in target.user + target.password:
        raise ValueError("User and password have no null characters.")
    if found["user"] is not None and not target.user:
        raise ValueError(f"A password needs a user. {form}")
    if target.mechanism == "PLAIN" and not tls:
        raise ValueError("PLAIN sends the password in clear: use kafkas://, or SCRAM.")
    return target


def _server(text: str, port: int, form: str) -> KafkaServer:
    found = _SERVER.fullmatch(text)
    if found is None:
        raise ValueError(f"A server is a host with a port. {form}")
    host = found["host"].strip("[]")
    address = plain_address(host)
    if address is None and (not is_name(host) or ends_in_number(host)):
        raise ValueError(
            f"The host is a name of letters, digits and hyphens, or an address. {form}"
        )
    port = int(found["port"] or port)
    if not 0 < port < 1 << 16:
        raise ValueError("A port is a number from 1 to 65,535.")
    return KafkaServer(host, port)


def _mechanism(query: str) -> str:
    given = parse_qsl(query, keep_blank_values=True, max_num_fields=8)
    if not query:
        return MECHANISMS[0]
    if [name for name, _ in given] != ["sasl"] or given[0][1] not in MECHANISMS:
        raise ValueError(f"The only parameter is `sasl`, one of {', '.join(MECHANISMS)}.")
    return given[0][1]
