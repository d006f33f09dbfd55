"""A shard: one immutable file of the match index, mapped into memory. Plain module.

All processes that map it share its pages.
"""

import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from registrations.match_index.format.assemble import AssembledShard
from registrations.match_index.format.errors import IndexDamaged
from registrations.match_index.format.layout import (
    ALIGNMENT,
    SECTIONS,
    Section,
    head_bytes,
    read_head,
)
from registrations.match_index.format.names import hash_of

_FORMATS: dict[int, Any] = {1: "B", 2: "H", 4: "I", 8: "q"}
_OTHERS: dict[str, Any] = {"table": "Q", "gram_bits": "Q", "numbers": "d"}


def write_shard(path: Path, made: AssembledShard, *, durable: bool) -> int:
    """Write a file, flushed to disk if `durable`; return its size in bytes. Raises OSError."""
    with path.open("xb") as file:
        for part in _parts(made):
            file.write(part)
        size = file.tell()
        if durable:
            file.flush()
            os.fsync(file.fileno())
    return size


def in_memory(made: AssembledShard) -> "Shard":
    """Return a shard without a file."""
    return Shard(Path("memory"), memoryview(b"".join(_parts(made))))


def _parts(made: AssembledShard) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a shard, section by section."""
    count = len(made.sections)
    first = _aligned(len(head_bytes(made.head, 0, dict.fromkeys(map(str, range(count)), _NONE))))
    sections: dict[str, Section] = {}
    offset = first
    for name, array in made.sections.items():
        sections[name] = Section(offset, array.nbytes, hash_of(_bytes_of(array)))
        offset = _aligned(offset + array.nbytes)
    head = head_bytes(made.head, offset, sections)
    yield head
    yield bytes(first - len(head))
    for array in made.sections.values():
        yield _bytes_of(array)
        yield bytes(_aligned(array.nbytes) - array.nbytes)


class Shard:
    """A mapped file. `views` are its sections as memoryviews of numbers."""

    def __init__(self, path: Path, data: memoryview | None = None) -> None:
        """Map the file, unless its bytes are given, and read its header only. Raises IndexDamaged,
        OSError.
        """
        self.path = path
        self.data = _mapped(path) if data is None else data
        self.head, self.sections = read_head(self.data)
        self.views: dict[str, Any] = {
            name: self._bytes(name).cast(_format_of(name)) for name in self.sections
        }

    def verify(self) -> None:
        """Read the file and compare the checksums. Raises IndexDamaged."""
        for name, section in self.sections.items():
            if hash_of(self._bytes(name)) != section.checksum:
                raise IndexDamaged(f"The section {name} of {self.path.name} is altered.")

    def text(self, at: str, name: str, position: int) -> bytes:
        """Return a text, from its offsets and bytes sections. Raises IndexDamaged."""
        begin, end = self.views[at][position], self.views[at][position + 1]
        if not begin <= end <= len(self.views[name]):
            raise IndexDamaged(f"The section {at} of {self.path.name} has an offset out of range.")
        return bytes(self.views[name][begin:end])

    def _bytes(self, name: str) -> memoryview:
        section = self.sections[name]
        return self.data[section.offset : section.offset + section.length]


def _mapped(path: Path) -> memoryview:
    with path.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            raise IndexDamaged("The file is empty.")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


_NONE = Section(0, 0, 0)


def _format_of(name: str) -> Any:
    return _OTHERS.get(name) or _FORMATS[SECTIONS.get(name, 8)]


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT


def _bytes_of(array: Any) -> memoryview:
    return memoryview(array).cast("B") if array.size else memoryview(b"")
