"""The matcher of a hub process."""

import pytest

from registrations.matching.spec import Spec
from registrations.matching.strategies import STRATEGIES, StreamStrategy


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_index_is_built_on_the_event_loop(strategy: str) -> None:
    """A listener of 1,000 registrations built one on the event loop."""
    matcher = StreamStrategy(strategy).new()
    for number in range(1_100):
        matcher.add(number, (Spec(pairs=(("n", number),)),))
    assert len(matcher) == 1_100
    assert StreamStrategy(strategy).is_indexed == (strategy in ("index", "auto"))
    if StreamStrategy(strategy).is_indexed:
        assert matcher.counters.rebuilds == 0


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown strategy"):
        StreamStrategy("none").new()
