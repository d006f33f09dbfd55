"""The part of a member of a group that shares which its connected session uses: shared_member.py
implements it. Plain module.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from delivery.listening.batch import DEFAULT_LIMITS, BatchLimits
from delivery.listening.frames import FrameFormat, T
from eventhub.access.principal import Principal


class SharingMember(Protocol):
    """A member of a group, as a connection serves it."""

    def wake(self) -> None: ...
    def set_window(self, events: int) -> None: ...
    def next_frames(self, form: FrameFormat[T], size: BatchLimits = DEFAULT_LIMITS) -> list[T]: ...
    def authenticate(self, principal: Principal) -> None: ...
    def give_back(self, stream: str, sequences: Sequence[int]) -> None: ...
    async def close(self) -> None: ...
    def acknowledge(
        self, stream: str, found: tuple[int | None, Sequence[int]], answer: dict[str, Any] | None
    ) -> None: ...
