"""Stored filters are compiled in time slices, and once while they are cached."""

import asyncio
from collections.abc import Iterator

import orjson
import pytest

from eventhub.base import limits
from eventhub.base.event_loop import run_in_slices
from registrations.catalog import StoredVersion, compiled
from registrations.compiled_filter_cache import CompiledFilters
from registrations.matching.spec import Spec
from registrations.matching.versions import StreamVersion


def written(id: int, filter: object, language: str = "pairs") -> StoredVersion:
    source = orjson.dumps(filter).decode()
    return StoredVersion(id, id, "c", None, 0, None, language, source, None, False, *[None] * 3, 1)


async def test_other_tasks_run_after_each_time_slice_of_compiling(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A listener of 150 registrations of 10 KB each blocked a web process for 5 s."""
    monkeypatch.setattr(limits, "TIME_SLICE_S", 0)
    did: list[str] = []

    def steps(name: str) -> Iterator[None]:
        for _ in range(50):
            did.append(name)
            yield

    rows = [written(id, {"domain": f"others go on {id}"}) for id in range(50)]
    works = [run_in_slices(steps("a")), run_in_slices(steps("b")), compiled(rows)]
    both = asyncio.gather(*works)
    while not both.done():
        await asyncio.sleep(0)
        did.append(".")
    [*_, versions] = await both
    assert [version.id for version in versions] == list(range(50))
    assert did.count(".") >= 150, "others as often as one of them"
    assert "".join(did).replace(".", "").startswith("abababab"), "each in its order"


async def test_known_versions_are_not_compiled_again() -> None:
    spec = Spec("d", None, ())
    known = StreamVersion(1, 1, "c", None, (spec,), 0, None)
    rows = [written(1, {}), written(2, {"domain": "e"}), written(3, {"domain": "e"})]
    one, two, three = await compiled(rows, {1: known})
    assert one.specs is known.specs
    assert two.specs is three.specs
    assert two.specs == (Spec("e", None, ()),)


def test_the_most_recently_used_filters_are_cached() -> None:
    texts = [f'{{"domain": "{name}"}}' for name in "abcd"]
    each = len(texts[0]) + limits.COMPILED_FILTER_CHARS
    remembered = CompiledFilters(3 * each)
    first = [remembered.specs("pairs", text) for text in texts[:3]]
    assert remembered.specs("pairs", texts[0]) is first[0]
    remembered.specs("pairs", texts[3])  # the second was asked for longest ago
    assert (len(remembered), remembered.chars) == (3, 3 * each)
    assert remembered.specs("pairs", texts[0]) is first[0]
    assert remembered.specs("pairs", texts[2]) is first[2]
    assert remembered.specs("pairs", texts[1]) is not first[1]


@pytest.mark.parametrize("chars", [0, 10])
def test_a_filter_that_is_too_long_for_the_cache_is_compiled(chars: int) -> None:
    remembered = CompiledFilters(chars)
    assert remembered.specs("pairs", "{}") == (Spec(None, None, ()),)
    assert (len(remembered), remembered.chars) == (0, 0)
