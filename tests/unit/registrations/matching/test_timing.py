"""The table of timings: one workload, every strategy, equal matches."""

import pytest

from eventhub.event.envelope import Event
from registrations.matching.scan import ScanMatcher
from registrations.matching.strategies import STRATEGIES
from registrations.matching.timing import MIXES, ResultsDiffer, table, time_all


class Forgetful(ScanMatcher):
    """A matcher that drops one match of every event with several."""

    def match(self, event: Event) -> list[int]:
        found = super().match(event)
        return found[1:] if len(found) > 1 else found


@pytest.mark.parametrize("mix", MIXES)
def test_every_strategy_finds_the_same_and_has_a_row(mix: str) -> None:
    work = MIXES[mix](200, 60, 1)
    timed = time_all(work, 0.01)
    assert {one.strategy for one in timed} == {*STRATEGIES}
    assert {one.matches for one in timed} == {timed[0].matches}
    assert timed[0].matches > len(work.events) / 2
    rows = table(mix, work, timed).splitlines()
    assert {row.split()[0] for row in rows[2:]} == {*STRATEGIES}
    figures = [float(row.split()[1].replace(",", "")) for row in rows[2:]]
    assert figures == sorted(figures, reverse=True)


def test_a_strategy_with_different_matches_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STRATEGIES, "forgetful", Forgetful)
    with pytest.raises(ResultsDiffer, match="forgetful and scan"):
        time_all(MIXES["pairs"](200, 60, 1), 0.0, ["scan", "forgetful"])
