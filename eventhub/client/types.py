"""What the client hands out, in-process and remote alike: cursors, receipts, delivered events,
problems. Plain.
"""

from typing import Any, Literal, NamedTuple


class Cursor(NamedTuple):
    """The last event seen: its segment's UUID and its sequence."""

    segment: str
    sequence: int


Start = Literal["now", "oldest"] | Cursor


class Range(NamedTuple):
    """A run of new numbers in one segment."""

    segment: str
    first: int
    last: int


class Duplicate(NamedTuple):
    """An event that was there before: its index in the request, and where it is."""

    at: int
    segment: str
    sequence: int


class Receipt(NamedTuple):
    """The answer to an emit: durable from here on."""

    stream: str
    ranges: tuple[Range, ...]
    duplicates: tuple[Duplicate, ...]

    @classmethod
    def of(cls, answer: dict[str, Any]) -> "Receipt":
        """From the JSON of the emit door."""
        return cls(
            answer["stream"],
            tuple(Range(**item) for item in answer["ranges"]),
            tuple(
                Duplicate(item["index"], item["segment"], item["sequence"])
                for item in answer["duplicates"]
            ),
        )

    @property
    def cursor(self) -> Cursor:
        """The last of the new events, or else the last of the duplicates."""
        if self.ranges:
            return Cursor(self.ranges[-1].segment, self.ranges[-1].last)
        return Cursor(self.duplicates[-1].segment, self.duplicates[-1].sequence)


class Delivered(NamedTuple):
    """One event of a listen. Numbers between `prev` and `sequence` were filtered, not lost."""

    segment: str
    sequence: int
    prev: int
    liveness: str  # live, or recovery: caught up from the log
    event: dict[str, Any]  # the event's own fields, as in the hub's native JSON
    registrations: tuple[int, ...] = ()  # of those that the listen names, the ones that matched

    @property
    def cursor(self) -> Cursor:
        return Cursor(self.segment, self.sequence)


class HubProblem(Exception):
    """The hub refused: its problem document. `code` is stable; docs/errors lists all."""

    def __init__(self, problem: dict[str, Any], *, retry_after_s: float | None = None) -> None:
        self.problem = problem
        self.code = str(problem.get("code", "internal"))
        self.status = int(problem.get("status", 500))
        self.position: dict[str, Any] = problem.get("position", {})
        self.retry_after_s = retry_after_s
        super().__init__(f"{self.code}: {problem.get('detail', '')}")


class LossDetected(Exception):
    """A frame is missing on its way here:

    `prev` is not the last number this listen knew (EMC-05).
    """

    def __init__(self, *, known: int, prev: int) -> None:
        self.known = known
        self.prev = prev
        super().__init__(
            f"Known up to {known}, but the next frame follows {prev}: a frame was lost."
        )
