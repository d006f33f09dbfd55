"""Reading the archive: the same bytes, within limits, from few row groups; damage is reported."""

import hashlib
import os
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

import psycopg
import pytest

from eventhub.base import limits
from eventhub.base.errors import EventHubError, UnknownEvent
from eventhub.event.envelope import Event
from eventhub.event.protobuf_codec import encode
from eventhub.eventlog.archive.folder import ArchiveFolder
from eventhub.eventlog.archive.reader import Archive
from eventhub.eventlog.errors import ArchiveDamaged, ArchiveUnavailable
from eventhub.eventlog.stored import ArchivedSegment, StoredEvent
from tests.integration.archive_world import archive, archived, archived_stream, fill, put
from tests.integration.eventlog_world import log_database

database = pytest.fixture(log_database)
PAGE_BYTES = limits.READ_BYTES_MAX
MIB = 1024 * 1024


def read_on(
    source: Archive, segments: list[ArchivedSegment], events_max: int, bytes_max: int
) -> list[StoredEvent]:
    """Read everything, page by page."""
    found: list[StoredEvent] = []
    for segment in segments:
        after = segment.first - 1
        while page := source.read(segment, after, events_max, bytes_max):
            found += page
            after = page[-1].sequence
    return found


def hot(url: str) -> list[tuple[int, int, int, bytes]]:
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT sequence, mask, (extract(epoch FROM appended_at) * 1000000)::bigint, payload"
            " FROM events ORDER BY sequence"
        ).fetchall()
    return [(row[0], row[1] % (1 << 64), row[2], bytes(row[3])) for row in rows]


def parts(found: list[StoredEvent]) -> list[tuple[int, int, int, bytes]]:
    return [(one.sequence, one.mask, one.appended_at_us, one.payload) for one in found]


@pytest.mark.parametrize(
    ("events_max", "bytes_max"), [(512, PAGE_BYTES), (7, PAGE_BYTES), (10_000, 3_000)]
)
def test_archived_events_equal_the_stored_ones(
    database: str, tmp_path: Path, events_max: int, bytes_max: int
) -> None:
    stream = archived_stream(database, "orders", events_max=500)
    fill(database, stream, 1_000)
    archive(database, tmp_path)
    segments = archived(database, stream)
    found = read_on(Archive(str(tmp_path)), segments, events_max, bytes_max)
    assert parts(found) == hot(database)
    assert {one.segment for one in found} == {segment.uuid for segment in segments}


def test_a_page_is_bounded_by_events_and_bytes_and_has_one_event_at_least(
    database: str, tmp_path: Path
) -> None:
    stream = archived_stream(database, "orders", events_max=5_000)
    payloads = fill(database, stream, 5_000)
    archive(database, tmp_path)
    [segment] = archived(database, stream)
    source = Archive(str(tmp_path))
    assert [one.sequence for one in source.read(segment, 4_090, 10, PAGE_BYTES)] == list(
        range(4_091, 4_101)  # across two row groups
    )
    three = sum(map(len, payloads[:3]))
    assert len(source.read(segment, 0, 512, three)) == 3
    assert len(source.read(segment, 0, 512, three + 1)) == 4
    assert len(source.read(segment, 0, 512, 1)) == 1
    assert source.read(segment, 5_000, 512, PAGE_BYTES) == []
    assert [one.sequence for one in source.read(segment, -5, 1, 1)] == [1]


def test_one_event_is_found(database: str, tmp_path: Path) -> None:
    stream = archived_stream(database, "orders", events_max=5_000)
    payloads = fill(database, stream, 5_000)
    archive(database, tmp_path)
    [segment] = archived(database, stream)
    source = Archive(str(tmp_path))
    assert source.find(segment, 4_500).payload == payloads[4_499]
    with pytest.raises(UnknownEvent):
        source.find(segment, 5_001)


class CountingFolder(ArchiveFolder):
    """A place that knows how many bytes were read from it."""

    count = 0

    def open(self, path: str) -> IO[bytes]:
        file: IO[bytes] = super().open(path)
        read = file.read

        def counted(*size: int) -> bytes:
            data = read(*size)
            self.count += len(data)
            return data

        file.read = counted  # type: ignore[method-assign]
        return file


def test_an_event_in_the_middle_costs_one_row_group(database: str, tmp_path: Path) -> None:
    stream = archived_stream(database, "orders", events_max=40_960)
    made = [
        encode(Event("d", "t", {"n": n}, body=random.randbytes(100), content_type="x"))
        for n in range(40_960)
    ]
    put(database, stream, made)
    archive(database, tmp_path)
    [segment] = archived(database, stream)
    source = Archive(str(tmp_path))
    place = source._folder = CountingFolder(str(tmp_path))
    assert source.find(segment, 20_000).payload == made[19_999]
    size = parquet_of(tmp_path).stat().st_size
    assert 0 < place.count < size / 5  # one of ten, the footer, the manifest
    before = place.count
    source.read(segment, 20_000, 400, PAGE_BYTES)
    assert place.count == before  # of the same row group, which is held


def parquet_of(place: Path) -> Path:
    [file] = place.rglob("zone=*/**/*.parquet")
    return file


def _truncate(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def _alter(at: Callable[[int], int]) -> Callable[[Path], None]:
    def alter(file: Path) -> None:
        content = bytearray(file.read_bytes())
        content[at(len(content))] ^= 1
        file.write_bytes(content)

    return alter


DAMAGE: dict[str, tuple[str, Callable[[Path], None]]] = {
    "truncated": ("parquet", _truncate),
    "empty": ("parquet", lambda file: os.truncate(file, 0)),
    "longer": ("parquet", lambda file: os.truncate(file, file.stat().st_size + 1)),
    "altered_data": ("parquet", _alter(lambda size: size // 3)),
    "altered_footer": ("parquet", _alter(lambda size: size - 200)),
    "altered_mark": ("parquet", _alter(lambda size: size - 1)),
    "missing": ("parquet", Path.unlink),
    "manifest_missing": ("json", Path.unlink),
    "manifest_altered": ("json", _alter(lambda size: size // 2)),
    "manifest_empty": ("json", lambda file: os.truncate(file, 0)),
}


def test_a_damaged_file_is_an_error_naming_its_segment_and_is_read_after_repair(
    database: str, tmp_path: Path
) -> None:
    stream = archived_stream(database, "orders", events_max=100)
    made = [
        encode(Event("d", "t", {}, body=random.randbytes(200), content_type="x"))
        for _ in range(100)
    ]
    put(database, stream, made)
    archive(database, tmp_path)
    [segment] = archived(database, stream)
    for name, (kind, harm) in DAMAGE.items():
        [file] = tmp_path.rglob(f"zone=*/**/*.{kind}")
        good = file.read_bytes()
        harm(file)
        source = Archive(str(tmp_path))
        with pytest.raises(ArchiveDamaged) as damaged:
            source.read(segment, 0, 512, PAGE_BYTES)
        assert segment.uuid in damaged.value.message, name
        assert damaged.value.details == {"segment": segment.uuid}, name
        assert "stream=" not in damaged.value.message, name  # paths are for the log
        file.write_bytes(good)
        found = source.read(segment, 0, 512, PAGE_BYTES)
        assert [one.payload for one in found] == made, name


def test_every_altered_byte_is_detected_or_has_no_effect(database: str, tmp_path: Path) -> None:
    stream = archived_stream(database, "orders", events_max=20)
    payloads = fill(database, stream, 20)
    archive(database, tmp_path)
    [segment] = archived(database, stream)
    file = parquet_of(tmp_path)
    good = file.read_bytes()
    found = 0
    for at in range(0, len(good), 41):
        content = bytearray(good)
        content[at] ^= 0x10
        file.write_bytes(content)
        try:
            read = [one.payload for one in Archive(str(tmp_path)).read(segment, 0, 99, PAGE_BYTES)]
        except ArchiveDamaged:
            found += 1
        else:
            assert read == payloads, at
    assert found > 10


def test_an_unreachable_archive_is_unavailable_and_not_damaged(
    database: str, tmp_path: Path
) -> None:
    stream = archived_stream(database, "orders", events_max=10)
    fill(database, stream, 10)
    place = tmp_path / "mount"
    archive(database, place)
    [segment] = archived(database, stream)
    source = Archive(str(place))
    place.rename(tmp_path / "elsewhere")
    with pytest.raises(ArchiveUnavailable):
        source.read(segment, 0, 10, PAGE_BYTES)
    (tmp_path / "elsewhere").rename(place)
    assert len(source.read(segment, 0, 10, PAGE_BYTES)) == 10


def _open_in(folder: Path) -> int:
    links = Path("/proc/self/fd").iterdir()
    return sum(os.path.realpath(link).startswith(str(folder)) for link in links)


def test_descriptors_and_memory_of_many_segments_are_bounded(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ARCHIVE_FILES_OPEN_MAX", 5)
    stream = archived_stream(database, "orders", events_max=10)
    fill(database, stream, 200)
    archive(database, tmp_path)
    source = Archive(str(tmp_path))
    segments = archived(database, stream)
    for segment in segments:
        source.read(segment, 0, 10, PAGE_BYTES)
    assert _open_in(tmp_path) == 5
    one = next(iter(source._files.values())).cached_bytes
    monkeypatch.setattr(limits, "ARCHIVE_CACHED_BYTES_MAX", 2 * one + 1)
    source.read(segments[0], 0, 10, PAGE_BYTES)
    assert _open_in(tmp_path) == 2
    source.close()
    assert _open_in(tmp_path) == 0
    assert len(source.read(segments[0], 0, 10, PAGE_BYTES)) == 10
    source.close()


def test_threads_share_a_few_open_files(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ARCHIVE_FILES_OPEN_MAX", 2)
    stream = archived_stream(database, "orders", events_max=20)
    payloads = fill(database, stream, 200)
    archive(database, tmp_path)
    source, segments = Archive(str(tmp_path)), archived(database, stream)
    together = threading.Barrier(8)

    def some(seed: int) -> None:
        chance = random.Random(seed)
        together.wait()
        for _ in range(100):
            segment = chance.choice(segments)
            after = chance.randrange(segment.first - 1, segment.last)
            found = source.read(segment, after, 5, PAGE_BYTES)
            assert [one.payload for one in found] == payloads[after : after + len(found)]
            assert found

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(some, range(8)))
    assert _open_in(tmp_path) <= 2
    source.close()
    assert _open_in(tmp_path) == 0


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def test_a_file_of_50_mb_is_sent_in_constant_memory(database: str, tmp_path: Path) -> None:
    stream = archived_stream(database, "large", events_max=56)
    for _ in range(56):
        body = random.randbytes(MIB - 1_000)
        put(database, stream, [encode(Event("d", "t", {}, body=body, content_type="x"))])
    archive(database, tmp_path)
    [segment] = archived(database, stream)
    raw = await Archive(str(tmp_path)).raw(segment)
    before, most, digest, size = resident_bytes(), 0, hashlib.sha256(), 0
    async for chunk in raw.chunks:
        size += len(chunk)
        digest.update(chunk)
        most = max(most, resident_bytes())
    file = parquet_of(tmp_path)
    assert size == raw.length == file.stat().st_size > 50 * MIB
    assert digest.hexdigest() == hashlib.sha256(file.read_bytes()).hexdigest()
    assert most - before < 10 * MIB


async def test_an_aborted_download_leaves_no_file_open(database: str, tmp_path: Path) -> None:
    stream = archived_stream(database, "orders", events_max=100)
    fill(database, stream, 100)
    archive(database, tmp_path)
    [segment] = archived(database, stream)
    raw = await Archive(str(tmp_path)).raw(segment)
    assert await anext(raw.chunks)
    await raw.chunks.aclose()
    assert _open_in(tmp_path) == 0


async def test_a_file_that_is_cut_short_is_not_sent(database: str, tmp_path: Path) -> None:
    stream = archived_stream(database, "orders", events_max=100)
    fill(database, stream, 100)
    archive(database, tmp_path)
    [segment] = archived(database, stream)
    file = parquet_of(tmp_path)
    _truncate(file)
    with pytest.raises(ArchiveDamaged):
        await Archive(str(tmp_path)).raw(segment)
    file.unlink()
    with pytest.raises(ArchiveDamaged):
        await Archive(str(tmp_path)).raw(segment)


async def test_an_altered_file_is_never_sent_to_its_end(database: str, tmp_path: Path) -> None:
    stream = archived_stream(database, "orders", events_max=100)
    fill(database, stream, 100)
    archive(database, tmp_path)
    [segment] = archived(database, stream)
    good = parquet_of(tmp_path).read_bytes()
    for at in (200, len(good) - 1):
        _alter(lambda _size, at=at: at)(parquet_of(tmp_path))  # type: ignore[misc]
        raw = await Archive(str(tmp_path)).raw(segment)
        sent = b""
        with pytest.raises(ArchiveDamaged):
            async for chunk in raw.chunks:
                sent += chunk
        assert len(sent) < raw.length
        parquet_of(tmp_path).write_bytes(good)
    assert _open_in(tmp_path) == 0


def test_an_archive_in_memory_is_read(database: str) -> None:
    place = f"memory://read-{os.getpid()}"
    stream = archived_stream(database, "orders", events_max=100)
    fill(database, stream, 300)
    archive(database, place)
    found = read_on(Archive(place), archived(database, stream), 64, PAGE_BYTES)
    assert parts(found) == hot(database)


def test_a_url_without_a_filesystem_is_refused_at_once() -> None:
    with pytest.raises(EventHubError, match="EVENTHUB_ARCHIVE_URL"):
        Archive("nowhere://bucket")
