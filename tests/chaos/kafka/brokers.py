"""Brokers of Apache Kafka in KRaft mode on loopback, each a broker and a controller, which are
killed and frozen. Their class path is given: no package registry of ours has them.
"""

import argparse
import os
import secrets
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from eventhub.base.guarded_process import Command, GuardedProcess, current_identity
from tests.certificates import Authority
from tests.chaos.hub import send_signal

VARIABLE = "EVENTHUB_CHAOS_KAFKA"
MISSING = (
    f"set {VARIABLE} to the class path of Apache Kafka's broker, such as '/opt/kafka/libs/*';"
    " docs/chaos.md, section Kafka, says how to get it"
)
JAVA = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
FORMAT_S = 60.0
END_S = 20.0
USER, PASSWORD, MECHANISM = "hub", "a-hidden-word", "SCRAM-SHA-512"
PARTITIONS = 4  # of Kafka's own topics, with offsets and transactions
CONFIG = """\
process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
listeners=PLAINTEXT://127.0.0.1:{plain},SASL_SSL://127.0.0.1:{secure},\\
  CONTROLLER://127.0.0.1:{control}
advertised.listeners=PLAINTEXT://127.0.0.1:{plain},SASL_SSL://127.0.0.1:{secure}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL
sasl.enabled.mechanisms={mechanism}
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=\\
  org.apache.kafka.common.security.scram.ScramLoginModule required;
ssl.keystore.type=PEM
ssl.keystore.certificate.chain={certificate}
ssl.keystore.key={key}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
log.dirs={folder}
auto.create.topics.enable=false
default.replication.factor={replicas}
min.insync.replicas={in_sync}
offsets.topic.num.partitions={partitions}
offsets.topic.replication.factor={replicas}
transaction.state.log.num.partitions={partitions}
transaction.state.log.replication.factor={replicas}
transaction.state.log.min.isr={in_sync}
group.initial.rebalance.delay.ms=0
"""


class Ports(NamedTuple):
    """The ports of a broker: in clear without a user, with TLS and user, and of the controller."""

    plain: int
    secure: int
    control: int


class Broker:
    """One broker. `number`: from 1."""

    def __init__(self, number: int, class_path: str, file: Path, ports: Ports) -> None:
        self.ports = ports
        self._file = file
        argv = ("java", *JAVA, "-cp", class_path, "kafka.Kafka", str(file))
        self._command = Command(f"kafka-{number}", argv, dict(os.environ), grace_s=END_S)
        self._process: GuardedProcess | None = None

    def start(self) -> None:
        with self._file.with_suffix(".log").open("ab") as output:
            self._process = GuardedProcess(self._command, current_identity(), output=output)

    def kill(self) -> None:
        """Kill it by SIGKILL, and wait until it is gone."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(END_S)

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        children = psutil.Process(self._process.pid).children()
        send_signal((child.pid for child in children), number)

    def listens(self) -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self.ports.secure)) == 0


class Brokers(list[Broker]):
    """All brokers of a cluster. `ca`: the authority of their certificates."""

    def __init__(self, ca: str) -> None:
        super().__init__()
        self.ca = ca

    @property
    def servers(self) -> str:
        """The servers for programs that may do everything, in clear."""
        return ",".join(f"127.0.0.1:{broker.ports.plain}" for broker in self)

    @property
    def secure_servers(self) -> str:
        """The servers for `USER`, with TLS."""
        return ",".join(f"127.0.0.1:{broker.ports.secure}" for broker in self)

    def grant(self, read: str, written: str) -> None:
        """Give `USER` the rights that connectors and sinks need, and no others."""
        of_groups = (ResourceType.GROUP, "eventhub-", ResourcePatternType.PREFIXED)
        of_topics = (
            (ResourceType.TOPIC, topic, ResourcePatternType.LITERAL) for topic in (read, written)
        )
        given = zip((*of_topics, of_groups), ("READ", "WRITE", "READ"), strict=True)
        rights = [
            AclBinding(*place, f"User:{USER}", "*", AclOperation[name], AclPermissionType.ALLOW)
            for place, name in given
        ]
        admin = AdminClient({"bootstrap.servers": self.servers})
        for granted in admin.create_acls(rights).values():
            granted.result(FORMAT_S)


@contextmanager
def brokers(folder: Path, class_path: str, count: int) -> Iterator[Brokers]:
    """Start the brokers of a new cluster until the block is left."""
    free = _free_ports(3 * count)
    ports = [Ports(*free[first : first + 3]) for first in range(0, 3 * count, 3)]
    authority = Authority("kafka")
    certificate, key = (text.replace("\n", "\\n") for text in authority.issue("kafka.example"))
    cluster = ("format", "-t", secrets.token_urlsafe(16), "--add-scram")
    login = f"{MECHANISM}=[name={USER},password={PASSWORD}]"
    with ExitStack() as stack:
        found = Brokers(authority.pem)
        for number, own in enumerate(ports, 1):
            file = folder / f"broker-{number}.properties"
            (folder / str(number)).mkdir(parents=True)
            text = CONFIG.format(
                **own._asdict(),
                node=number,
                voters=",".join(f"{n}@127.0.0.1:{one.control}" for n, one in enumerate(ports, 1)),
                folder=folder / str(number),
                replicas=count,
                in_sync=count // 2 + 1,
                partitions=PARTITIONS,
                certificate=certificate,
                key=key,
                mechanism=MECHANISM,
            )
            file.write_text(text)
            _run(class_path, "kafka.tools.StorageTool", *cluster, login, "-c", str(file))
            broker = Broker(number, class_path, file, own)
            broker.start()
            stack.callback(broker.kill)
            found.append(broker)
        yield found


def class_path(text: str) -> str:
    """Return the class path that the command line or the environment gives."""
    if not text:
        raise argparse.ArgumentTypeError(MISSING)
    return text


def _run(class_path: str, *words: str) -> None:
    argv = ["java", *JAVA, "-cp", class_path, *words]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=FORMAT_S, check=False)
    if done.returncode:
        raise RuntimeError(f"{words[0]} ended with {done.returncode}: {done.stdout} {done.stderr}")


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        taken = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in taken:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in taken]
