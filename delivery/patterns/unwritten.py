"""What a group did since its last checkpoint, and how much one event has caused. Plain module."""

from itertools import count

from delivery.patterns.outputs import OutputEvent
from eventhub.base import limits
from registrations.pattern_groups.consumed import Runs


class Unwritten:
    """What a group did since its last checkpoint."""

    def __init__(self, position: int, now_s: float) -> None:
        self.start = position
        self.runs = Runs()
        self.added: list[int] = []
        self.removed: list[int] = []
        self.outputs: list[OutputEvent] = []
        self.output_bytes = 0
        self.oldest_us = 0  # when the first output was added; 0: there is none
        self.since_s = now_s
        self.needs_snapshot = False
        self.is_due = False  # there is something that should not wait

    def add_output(self, output: OutputEvent, now_us: int) -> None:
        """Add an output to be written."""
        self.oldest_us = self.oldest_us or now_us
        self.outputs.append(output)
        self.output_bytes += output.bytes

    @property
    def has_enough_events(self) -> bool:
        """Whether a restart would feed as many events again as it should."""
        return self.runs.count >= limits.PATTERN_WRITE_EVENTS_MAX

    @property
    def has_enough_runs(self) -> bool:
        """Whether the events take as much memory as they should."""
        return len(self.runs.runs) >= limits.PATTERN_WRITE_EVENTS_MAX

    @property
    def write_s(self) -> float:
        """About the processor time that writing the outputs takes, here and in the database."""
        events, kilobytes = len(self.outputs), self.output_bytes / 1_000
        return events * limits.PATTERN_OUTPUT_S + kilobytes * limits.PATTERN_OUTPUT_KB_S

    @property
    def stored_bytes(self) -> int:
        """About the bytes that its outputs take in the database."""
        return self.output_bytes + len(self.outputs) * limits.EVENT_OVERHEAD_BYTES

    @property
    def is_large(self) -> bool:
        """Whether there is as much as one transaction should write."""
        return (
            len(self.outputs) >= limits.PATTERN_OUTPUTS_PER_WRITE
            or self.output_bytes >= limits.PATTERN_OUTPUT_BYTES_PER_WRITE
        )


class EventOutputs:
    """How much one event has caused so far, of all patterns of the group."""

    def __init__(self) -> None:
        self.numbers = count()
        self.events = 0
        self.bytes = 0

    def take(self, output: OutputEvent) -> bool:
        """Count an output; return False if it is too much."""
        if (
            self.events >= limits.PATTERN_OUTPUTS_PER_EVENT_MAX
            or self.bytes + output.bytes > limits.PATTERN_OUTPUT_BYTES_PER_EVENT_MAX
        ):
            return False
        self.events += 1
        self.bytes += output.bytes
        return True
