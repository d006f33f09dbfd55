from collections.abc import Callable
from typing import Any

FORMAT: int

class Kernel:
    lookups: int
    touched: int
    def __init__(
        self,
        data: memoryview,
        sections: dict[str, tuple[int, int]],
        head: dict[str, int],
        test: Callable[[int, Any], bool],
        hierarchy: Callable[[Any], tuple[str, ...]],
        order: Callable[[Any], tuple[float, int]],
        number_of_text: Callable[[str], float | None],
        application_at: int,
        /,
    ) -> None: ...
    def match(self, event: Any, positions: bool, /) -> bytes: ...
    def mark_removed(self, at: int, /) -> None: ...
