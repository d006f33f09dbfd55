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

import psutil

from eventhub.base.guarded_process import Command, GuardedProcess, current_identity
from tests.chaos.hub import send_signal

VARIABLE = "EVENTHUB_CHAOS_KAFKA"
MISSING = (
    f"set {VARIABLE} to the class path of Apache Kafka's broker, such as '/opt/kafka/libs/*';"
    " docs/chaos.md, section Kafka, says how to get it"
)
JAVA = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
FORMAT_S = 60.0
END_S = 20.0
PARTITIONS = 4  # of Kafka's own topics, with offsets and transactions
CONFIG = """\
process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
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


class Broker:
    """One broker. `number`: from 1."""

    def __init__(self, number: int, class_path: str, file: Path, port: int) -> None:
        self.port = port
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
            return one.connect_ex(("127.0.0.1", self.port)) == 0


class Brokers(list[Broker]):
    """All brokers of a cluster."""

    @property
    def servers(self) -> str:
        return ",".join(f"127.0.0.1:{broker.port}" for broker in self)


@contextmanager
def brokers(folder: Path, class_path: str, count: int) -> Iterator[Brokers]:
    """Start the brokers of a new cluster until the block is left."""
    ports = _free_ports(2 * count)
    named = [*zip(range(1, count + 1), ports[:count], ports[count:], strict=True)]
    cluster = secrets.token_urlsafe(16)
    with ExitStack() as stack:
        found = Brokers()
        for number, port, controller in named:
            file = folder / f"broker-{number}.properties"
            (folder / str(number)).mkdir(parents=True)
            text = CONFIG.format(
                node=number,
                voters=",".join(f"{one}@127.0.0.1:{other}" for one, _, other in named),
                port=port,
                controller=controller,
                folder=folder / str(number),
                replicas=count,
                in_sync=count // 2 + 1,
                partitions=PARTITIONS,
            )
            file.write_text(text)
            _run(class_path, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(file))
            broker = Broker(number, class_path, file, port)
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
