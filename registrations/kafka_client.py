"""A consumer or producer of Kafka for a client's cluster: its configuration, its calls in a thread
of its own, what its errors mean, and the look at the servers that the cluster names. Plain module.

librdkafka resolves and connects by itself, so the addresses of all servers are checked before
anything but the list of servers is asked for, and again now and then.
"""

import asyncio
import logging
import ssl
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from eventhub.base import limits
from registrations.endpoints.addresses import CallbackAddresses, Resolve, resolved
from registrations.kafka_servers import KafkaServer, KafkaTarget, PrivateServer, require_allowed

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

T = TypeVar("T")
_log = logging.getLogger(__name__)  # of librdkafka, whose errors are reported besides
_log.addHandler(logging.NullHandler())
_log.propagate = False
_LOOK_S = 0.5  # of one of the looks of which the answer about a topic consists
# the codes of faults, by the names of errors that no repetition mends or that end every connection
_ENDING = {
    "_AUTHENTICATION": "wrong_credentials",
    "SASL_AUTHENTICATION_FAILED": "wrong_credentials",
    "UNSUPPORTED_SASL_MECHANISM": "wrong_credentials",
    "_SSL": "tls",
    "_RESOLVE": "unknown_host",
    "_ALL_BROKERS_DOWN": "unreachable",
}
_ENDED = ("_AUTHENTICATION", "_ALL_BROKERS_DOWN")  # the others may be of one server
_REFUSED = {
    "UNKNOWN_TOPIC_OR_PART": "no_topic",
    "_UNKNOWN_TOPIC": "no_topic",
    "_UNKNOWN_PARTITION": "no_topic",
    "TOPIC_EXCEPTION": "no_topic",
    "TOPIC_AUTHORIZATION_FAILED": "not_permitted",
    "GROUP_AUTHORIZATION_FAILED": "not_permitted",
    "CLUSTER_AUTHORIZATION_FAILED": "not_permitted",
    "_TIMED_OUT": "timeout",
    "_MSG_TIMED_OUT": "timeout",
    "_TRANSPORT": "unreachable",
}


class KafkaFault(Exception):
    """Why a cluster cannot be used: a code, and a text that names no secret."""

    def __init__(self, code: str, detail: str) -> None:
        self.code = code
        self.detail = detail
        super().__init__(detail)


class KafkaAccess(NamedTuple):
    """A cluster, and what is needed to reach it. `ca`: certificates in PEM by which its servers are
    verified, empty: the machine's; `resolve`: by default the machine's.
    """

    target: KafkaTarget
    ca: str
    addresses: CallbackAddresses
    resolve: Resolve = resolved


class KafkaClient:
    """A consumer or producer, as `open_client` returns it. Its calls wait for servers, so they run
    in a thread, one at a time.
    """

    def __init__(
        self, access: KafkaAccess, make: Callable[[Any], Any], more: Mapping[str, Any]
    ) -> None:
        self._access = access
        self._errors: deque[KafkaError] = deque(maxlen=16)
        self._calls = ThreadPoolExecutor(1, "kafka")
        config = {**_configuration(access), **more, "error_cb": self._errors.append}
        self._made = self._calls.submit(make, config)
        self._looked_at_s = 0.0

    @property
    def is_look_due(self) -> bool:
        return time.monotonic() >= self._looked_at_s + limits.KAFKA_LOOK_S

    async def call(self, function: Callable[..., T], *args: Any) -> T:
        """Call a function in the thread, with the client as first argument. Raises KafkaFault."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._calls, partial(self._call, function, *args))

    async def partitions(self, topics: Iterable[str]) -> dict[str, int]:
        """Return how many partitions topics have, after a look at the servers of the cluster.
        Raises KafkaFault.
        """
        counts, servers = await self.call(self._look, topics)
        if len(servers) > limits.KAFKA_BROKERS_MAX:
            text = f"The cluster has more than {limits.KAFKA_BROKERS_MAX} servers."
            raise KafkaFault("failed", text)
        await _require_allowed(self._access, servers)
        self._looked_at_s = time.monotonic()
        return counts

    def require_usable(self) -> None:
        """Raise KafkaFault if no server can be used any more."""
        found = {error.name(): error for error in self._errors}
        if found.keys().isdisjoint(_ENDED):
            return
        name = next(name for name in _ENDING if name in found)
        raise KafkaFault(_ENDING[name], self._words(found[name]))

    def close(self, end: Callable[[Any], object]) -> None:
        """Close after the call under way; `end`: what the thread does before. There the client is
        freed as well, which waits for its connections.
        """
        self._calls.submit(_end, self._made, end)
        self._made = Future()
        self._calls.shutdown(wait=False)

    def _call(self, function: Callable[..., T], *args: Any) -> T:
        import confluent_kafka as ck

        try:
            return function(self._made.result(), *args)
        except ck.KafkaException as error:
            raise self.fault_of(error.args[0]) from None
        except SystemError as error:  # the binding's form of a fatal error amid its callbacks
            if not isinstance(error.__cause__, ck.KafkaException):
                raise
            raise self.fault_of(error.__cause__.args[0]) from None

    def _look(self, client: Any, topics: Iterable[str]) -> tuple[dict[str, int], set[KafkaServer]]:
        counts: dict[str, int] = {}
        servers: set[KafkaServer] = set()
        for topic in topics:
            found = self._described(client, topic)
            described = found.topics[topic]
            if described.error is not None:
                raise self.fault_of(described.error)
            counts[topic] = len(described.partitions)
            servers |= {KafkaServer(one.host, one.port) for one in found.brokers.values()}
        return counts, servers

    def _described(self, client: Any, topic: str) -> Any:
        """Return what the cluster says of a topic; give up early if no server can be used."""
        import confluent_kafka as ck

        until_s = time.monotonic() + limits.KAFKA_ANSWER_S_MAX
        while True:
            try:
                return client.list_topics(topic, timeout=_LOOK_S)
            except ck.KafkaException as error:
                client.poll(0)  # which reports errors of connections
                self.require_usable()
                if time.monotonic() >= until_s:
                    raise self.fault_of(error.args[0]) from None

    def fault_of(self, error: "KafkaError") -> KafkaFault:
        """Return what an error means, in the words of the server or of librdkafka."""
        code = {**_ENDING, **_REFUSED}.get(error.name(), "failed")
        return KafkaFault(code, self._words(error))

    def _words(self, error: "KafkaError") -> str:
        """Return the words of an error, with those of the connection that failed last."""
        last = next((one.str() for one in reversed(self._errors) if one.name() == "_TRANSPORT"), "")
        if error.name() in ("_ALL_BROKERS_DOWN", "_TRANSPORT", "_TIMED_OUT") and last:
            return f"The cluster is not reached: {last}"
        return str(error.str())


async def open_client(
    access: KafkaAccess, make: Callable[[Any], Any], more: Mapping[str, Any]
) -> KafkaClient:
    """Return a client, which `make` returns from a configuration with `more`. It connects at once,
    so the servers of the URL are checked before. Raises KafkaFault.
    """
    await _require_allowed(access, access.target.servers)
    return KafkaClient(access, make, more)


async def _require_allowed(access: KafkaAccess, servers: Iterable[KafkaServer]) -> None:
    try:
        await require_allowed(servers, access.addresses, access.resolve)
    except PrivateServer as error:
        raise KafkaFault("address_refused", str(error)) from None
    except OSError as error:
        raise KafkaFault("unknown_host", f"A server is not found: {error}") from None


def _end(made: Future[Any], end: Callable[[Any], object]) -> None:
    if made.exception() is None:
        end(made.result())


def _configuration(access: KafkaAccess) -> dict[str, Any]:
    """Return what consumers and producers have in common. Nothing of the hub's own environment is
    in it.
    """
    target = access.target
    protocol = ("SASL_" if target.user else "") + ("SSL" if target.tls else "PLAINTEXT")
    config: dict[str, Any] = {
        "bootstrap.servers": ",".join(server.text for server in target.servers),
        "security.protocol": protocol,
        "client.id": "eventhub",
        "logger": _log,
        "allow.auto.create.topics": False,
        "enable.metrics.push": False,
        "receive.message.max.bytes": limits.KAFKA_ANSWER_BYTES_MAX,
        "socket.connection.setup.timeout.ms": int(limits.KAFKA_ANSWER_S_MAX * 1_000),
        "reconnect.backoff.max.ms": 2_000,
    }
    if target.user:
        config["sasl.mechanism"] = target.mechanism
        config["sasl.username"], config["sasl.password"] = target.user, target.password
    if target.tls and access.ca:
        config["ssl.ca.pem"] = access.ca
    elif target.tls:
        config["ssl.ca.location"] = ssl.get_default_verify_paths().cafile or "probe"
    return config
