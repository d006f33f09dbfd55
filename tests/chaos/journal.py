"""The promises that emitters received, kept outside the hub: in memory, and in an append-only file
that can be judged after the run. It does not depend on the hub's tables.
"""

import time
from array import array
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple

import orjson

from tests.chaos.events import Name


class Promise(NamedTuple):
    """The position that the hub promised for an event."""

    stream: str
    segment: str
    sequence: int


class Answer(NamedTuple):
    """The answer to an emit as plain lists."""

    ranges: list[list[Any]]  # segment, first, last
    duplicates: list[list[Any]]  # index in the request, segment, sequence

    @classmethod
    def of_json(cls, answer: dict[str, Any]) -> "Answer":
        """Read the JSON of the emit route."""
        return cls(
            [[run["segment"], run["first"], run["last"]] for run in answer["ranges"]],
            [[item["index"], item["segment"], item["sequence"]] for item in answer["duplicates"]],
        )


class Failure(NamedTuple):
    """An attempt that was not answered with 200."""

    at: float
    emitter: str
    status: int  # 0: no answer at all
    code: str
    retry_after: bool
    took_s: float


class Journal:
    """Promises by event name. An event is promised, absent (the hub answered that nothing was
    stored) or unknown (there was no answer, and the emitter did not repeat it).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.promised: dict[str, Promise] = {}
        self.absent: set[str] = set()
        self.unknown: set[str] = set()
        self.offered = 0
        self.attempts = 0
        self.duplicates = 0  # promises that a repeat found
        self.failures: list[Failure] = []
        self.problems: list[str] = []
        self.ack_times = array("d")  # of each answered request, ascending
        self.ack_sent = array("d")  # when the answered attempt began
        self.longest_attempt_s = 0.0
        self.highest: dict[str, int] = {}  # by stream: the last sequence that was promised
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: IO[bytes] = path.open("ab", buffering=0)  # what was promised survives us

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def tried(self, stream: str, names: Sequence[Name]) -> None:
        """Record events that are offered for the first time."""
        self.offered += len(names)
        self._write("tried", stream=stream, names=[str(name) for name in names])

    def promise(self, stream: str, names: Sequence[Name], answer: Answer, sent_at: float) -> None:
        """Record that the hub answered 200 to the request with these events."""
        self._write(
            "promised",
            stream=stream,
            names=[str(name) for name in names],
            ranges=answer.ranges,
            duplicates=answer.duplicates,
        )
        try:
            places = places_of(answer, len(names))
        except ValueError as error:
            self.problems.append(f"the answer for {names[0]} is wrong: {error}")
            return
        self.duplicates += len(answer.duplicates)
        for name, (segment, sequence) in zip(names, places, strict=True):
            self.promised[str(name)] = Promise(stream, segment, sequence)
        highest = max(sequence for _, sequence in places)
        self.highest[stream] = max(self.highest.get(stream, 0), highest)
        now = time.monotonic()
        self.ack_times.append(now)
        self.ack_sent.append(sent_at)
        self.longest_attempt_s = max(self.longest_attempt_s, now - sent_at)

    def gave_up(self, names: Sequence[Name], *, stored: bool | None) -> None:
        """Record that the emitter does not repeat these events. `stored` False: the hub answered
        that it stored nothing.
        """
        (self.absent if stored is False else self.unknown).update(str(name) for name in names)
        self._write("gave_up", stored=stored, names=[str(name) for name in names])

    def failed(self, failure: Failure) -> None:
        """Record a failed attempt; the emitter may repeat it."""
        self.failures.append(failure)
        self.longest_attempt_s = max(self.longest_attempt_s, failure.took_s)
        self._write("failed", **failure._asdict())

    def note(self, kind: str, **fields: object) -> None:
        """Record anything else that helps to read the file: faults, judgements."""
        self._write(kind, **fields)

    def problem(self, text: str) -> None:
        self.problems.append(text)
        self._write("problem", text=text)

    def _write(self, kind: str, **fields: object) -> None:
        line = {"kind": kind, "at": round(time.monotonic(), 4), **fields}
        self._file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))


def places_of(answer: Answer, count: int) -> list[tuple[str, int]]:
    """Return (segment, sequence) of each event of a request. Raise ValueError unless the answer has
    one position per event.
    """
    found = {index: (segment, sequence) for index, segment, sequence in answer.duplicates}
    fresh = [
        (segment, sequence)
        for segment, first, last in answer.ranges
        for sequence in range(first, last + 1)
    ]
    if len(found) + len(fresh) != count or any(index >= count for index in found):
        raise ValueError(f"{count} events, but {answer}")
    following = iter(fresh)
    return [found[index] if index in found else next(following) for index in range(count)]


def read_promises(path: Path) -> dict[str, Promise]:
    """Read all promises of a journal's file, for a judgement that does not depend on memory."""
    promised: dict[str, Promise] = {}
    with path.open("rb") as file:
        for line in file:
            entry = orjson.loads(line)
            if entry["kind"] != "promised":
                continue
            names = entry["names"]
            places = places_of(Answer(entry["ranges"], entry["duplicates"]), len(names))
            for name, (segment, sequence) in zip(names, places, strict=True):
                promised[name] = Promise(entry["stream"], segment, sequence)
    return promised
