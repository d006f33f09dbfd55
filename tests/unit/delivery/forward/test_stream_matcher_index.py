"""An interest with epochs of a match index gives the same matches as one with everything in memory,
under every change, end, suspension or swap.
"""

from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delivery.forward import stream_matcher as module
from delivery.forward.indexed import IndexedVersions
from delivery.forward.stream_matcher import CallbackMatcher
from registrations.match_index.epochs.epoch import mark_damaged, open_epoch
from registrations.match_index.format.errors import IndexDamaged
from registrations.matching.strategies import StreamStrategy
from registrations.matching.versions import SuspensionSpan
from tests.unit.delivery.forward.indexed import CLIENTS, EVENTS, Twins, epoch_of, version

EVENT = EVENTS[0]
# what happens often is there several times
STEPS = (
    ["emit"] * 4
    + ["register"] * 4
    + ["change"] * 3
    + ["tell"] * 3
    + ["step"] * 3
    + ["match"] * 3
    + ["suspend", "build", "swap"]
)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1_000_000), steps=st.lists(st.sampled_from(STEPS), min_size=60))
def test_matches_are_the_same_with_an_index_and_in_memory(
    tmp_path_factory: pytest.TempPathFactory, seed: int, steps: list[str]
) -> None:
    twins = Twins(Random(seed), tmp_path_factory.mktemp("index"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "_STEP_VERSIONS", 1)  # every version is a step
        for step in [*steps, "build", "swap", *["register", "tell", "step"] * 3]:
            getattr(twins, step)()
        while twins.indexed.indexed is None:
            twins.step()
        for step in ("emit", "change", "emit", "tell", *["step"] * 300, *["tell"] * 50, "match"):
            getattr(twins, step)()
    assert twins.swaps


def test_versions_in_an_index_take_no_memory_and_get_their_end_there(tmp_path: Path) -> None:
    kept = [version(1, report='["x"]'), version(2, group=5), version(3, since=4)]
    interest = CallbackMatcher(2, StreamStrategy("auto"))
    interest.indexed = IndexedVersions(
        epoch_of(tmp_path, [*kept, version(4, until=2)], after=2), CLIENTS
    )
    interest.take([*kept, version(9)])
    assert (interest.sizes, len(interest)) == ((3, 1, 0), 4)
    assert interest.match(EVENT, 3).endpoints == {1: [10, 20, 90]}
    assert interest.match(EVENT, 5).endpoints == {1: [10, 20, 30, 90]}
    assert interest.match(EVENT, 3).shapes == {}  # not all of the endpoint's have a report
    interest.suspend({5: (SuspensionSpan(3, 4),)})
    interest.take([version(1, until=4), version(9, until=3)])
    match = [interest.match(EVENT, sequence).endpoints[1] for sequence in (3, 4, 5)]
    assert match == [[10, 20, 90], [10], [20, 30]]
    interest.advance(5)
    assert interest.sizes == (3, 0, 1)


def test_only_clients_that_may_see_an_event_match(tmp_path: Path) -> None:
    made = [version(1), version(2, client="two"), version(3, client="three")]
    asked: list[str] = []

    def groups_of(client: str) -> frozenset[str]:
        asked.append(client)
        return frozenset({"ops"}) if client == "three" else frozenset()

    interest = CallbackMatcher(0, StreamStrategy("auto"), groups_of=groups_of)
    interest.indexed = IndexedVersions(epoch_of(tmp_path, made), {1: "one", 3: "three"})
    assert interest.match(EVENT, 1).endpoints == {1: [10, 20, 30]}
    assert asked == []
    assert interest.match(EVENT._replace(audience=("ops",)), 1).endpoints == {1: [30]}
    assert sorted(asked) == ["one", "three"]
    one = EVENT._replace(destinations=("one", "two"))
    assert interest.match(one, 1).endpoints == {1: [10]}, "a client without a name sees nothing"


def test_a_damaged_index_is_recognized_and_never_opened_again(tmp_path: Path) -> None:
    epoch = epoch_of(tmp_path, [version(1), version(2, specs=())])
    part = tmp_path / epoch.manifest.folder / epoch.manifest.parts[0].file
    section = epoch.base.shards[0].sections["dense_at"]
    with part.open("r+b") as file:
        file.seek(section.offset)
        file.write(b"\x7f" * section.length)
    interest = CallbackMatcher(0, StreamStrategy("auto"))
    interest.indexed = IndexedVersions(open_epoch(tmp_path), CLIENTS)
    with pytest.raises(IndexDamaged):
        interest.match(EVENT, 1)
    assert interest.damaged
    mark_damaged(tmp_path, epoch.manifest)
    with pytest.raises(IndexDamaged, match="found to be damaged"):
        open_epoch(tmp_path)
