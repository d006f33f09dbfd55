"""What a process of the hub matches in memory."""

import pytest

from registrations.matching.spec import Spec
from registrations.matching.strategies import STRATEGIES
from registrations.matching.stream_matcher import Matching


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_nobody_waits_for_an_index(strategy: str) -> None:
    """A listen that named 1,000 registrations built one on the event loop."""
    matcher = Matching(strategy).new()
    for number in range(1_100):
        matcher.add(number, (Spec(pairs=(("n", number),)),))
    assert len(matcher) == 1_100
    assert Matching(strategy).is_indexed == (strategy in ("index", "auto"))
    if Matching(strategy).is_indexed:
        assert matcher.counters.rebuilds == 0


def test_there_is_no_other_strategy() -> None:
    with pytest.raises(ValueError, match="no strategy"):
        Matching("none").new()
