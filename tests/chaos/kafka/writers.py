"""Programs that write records under load: with an idempotent producer, or in transactions of which
some are aborted. A journal has what the cluster acknowledged.
"""

import logging
import random
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import confluent_kafka as ck

KEYS = 17  # of each writer
BURST_S = 0.02
ABORTED = 0.2  # of the transactions
RECORDS_MAX = 60  # of a transaction
ANSWER_S = 120.0
_log = logging.getLogger(__name__)  # of librdkafka, which reports what the faults here cause
_log.addHandler(logging.NullHandler())
_log.propagate = False
CONFIG = {
    "acks": "all",
    "enable.idempotence": True,
    "message.timeout.ms": 0,
    "linger.ms": 5,
    "logger": _log,
    "reconnect.backoff.max.ms": 1_000,
}


class Place(NamedTuple):
    """What a value says: the writer, and its how manieth record it is."""

    writer: str
    number: int

    @property
    def key(self) -> str:
        return f"{self.writer}-{self.number % KEYS}"

    @property
    def value(self) -> bytes:
        return b'{"writer": "%s", "n": %d}' % (self.writer.encode(), self.number)


class Written(NamedTuple):
    """The journal of a writer: what was acknowledged or committed, and what was aborted. The
    outcome of other records is not known.
    """

    stored: set[Place]
    aborted: set[Place]


class Writer:
    """A writer in a thread of its own."""

    def __init__(self, name: str, servers: str, topic: str, per_s: float) -> None:
        self.written = Written(set(), set())
        self.count = 0
        self._name = name
        self._topic = topic
        self._per_s = per_s
        self._ended = threading.Event()
        self._config = {**CONFIG, "bootstrap.servers": servers}
        self._errors: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._ended.set()

    def join(self) -> None:
        """Wait until all is acknowledged. Raise what ended the thread."""
        self._thread.join()
        if self._errors:
            raise self._errors[0]

    def write(self) -> None:
        """Write until the end."""
        producer = ck.Producer(self._config)
        for place in self._due():
            self._produce(producer, place, self.written.stored)
            producer.poll(0)
        left = producer.flush(ANSWER_S)
        if left:
            raise RuntimeError(f"{left} records of {self._name} are not acknowledged")

    def _run(self) -> None:
        try:
            self.write()
        except BaseException as error:
            self._errors.append(error)

    def _due(self) -> Iterator[Place]:
        """Yield records as they fall due, until the end."""
        began_s = time.monotonic()
        while not self._ended.wait(BURST_S):
            while self.count < (time.monotonic() - began_s) * self._per_s:
                yield Place(self._name, self.count)
                self.count += 1

    def _produce(self, producer: ck.Producer, place: Place, noted: set[Place] | None) -> None:
        def note(error: Any, _message: Any) -> None:
            if error is None and noted is not None:
                noted.add(place)

        while True:
            try:
                producer.produce(self._topic, place.value, place.key, on_delivery=note)
                return
            except BufferError:  # the cluster is away
                producer.poll(0.1)


class Transactor(Writer):
    """A writer in transactions."""

    def __init__(self, *given: Any, dice: random.Random) -> None:
        super().__init__(*given)
        self._dice = dice
        self._config = {**self._config, "transactional.id": self._name}
        self._config |= {"transaction.timeout.ms": 10_000, "message.timeout.ms": 9_000}

    def write(self) -> None:
        producer: ck.Producer | None = None
        records: list[Place] = []
        size = self._dice.randint(1, RECORDS_MAX)
        for place in self._due():
            records.append(place)
            if len(records) == size:
                producer = self._transact(producer or self._begun(), records)
                records, size = [], self._dice.randint(1, RECORDS_MAX)

    def _begun(self) -> ck.Producer:
        """Return a producer; what one before left open is aborted."""
        producer = ck.Producer(self._config)
        until_s = time.monotonic() + ANSWER_S
        while True:
            try:
                producer.init_transactions(10.0)
                return producer
            except ck.KafkaException:
                if time.monotonic() >= until_s:
                    raise

    def _transact(self, producer: ck.Producer, records: Sequence[Place]) -> ck.Producer | None:
        """Write records in a transaction; return the producer if it can go on."""
        aborts = self._dice.random() < ABORTED
        try:
            producer.begin_transaction()
            for place in records:
                self._produce(producer, place, None)
            if aborts:
                producer.flush(ANSWER_S)
                _until_done(producer.abort_transaction)
            else:
                _until_done(producer.commit_transaction)
        except ck.KafkaException as error:
            if not error.args[0].txn_requires_abort():
                return None  # the outcome is not known
            try:
                _until_done(producer.abort_transaction)
            except ck.KafkaException:
                return None
            aborts = True
        (self.written.aborted if aborts else self.written.stored).update(records)
        return producer


def _until_done(end: Any) -> None:
    """Commit or abort; call again as long as the outcome may come."""
    until_s = time.monotonic() + ANSWER_S
    while True:
        try:
            end(5.0)
            return
        except ck.KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() >= until_s:
                raise
