"""What is said of a build while it goes on, of how it stands, and of a stream that has no use for
an index.
"""

import pytest

from eventhub.base.clock import ManualClock
from registrations.match_index.builds.progress import Watch
from registrations.match_index.builds.rows import Build, Stream
from registrations.match_index.builds.status import Standing
from registrations.match_index.epochs.state import IndexState
from registrations.match_index.format.builder import Progress

STEPS = [("read", 0), ("read", 500), ("read", 4_000), ("read", 9_000), ("written", 10_000)]


def said(*, terminal: bool) -> list[str]:
    """What was written while each step took two seconds."""
    clock, written = ManualClock(), list[str]()
    with Watch("shop/orders", 10_000, clock, written.append, terminal) as watch:
        for stage, entries in STEPS:
            watch.hear(Progress(stage, entries))
            clock.advance_s(2)
    return written


def test_a_log_gets_a_line_for_each_stage_and_every_five_seconds() -> None:
    assert said(terminal=False) == [
        "shop/orders: read 0 of about 10,000\n",
        "shop/orders: read 9,000 of about 10,000, 1,500/s\n",
        "shop/orders: written 10,000\n",
    ]


def test_a_terminal_gets_one_line_that_changes_and_is_gone_at_the_end() -> None:
    written = said(terminal=True)
    assert written[1] == "\r\x1b[Kshop/orders: read 500 of about 10,000, 250/s"
    assert len(written) == len(STEPS) + 1
    assert written[-1] == "\r\x1b[K"
    assert "\n" not in "".join(written)


# asked, open, alive, reason: the state
STATES = [
    (None, False, False, "", "built"),
    (None, False, False, "internal", "failed"),
    (1, False, False, "", "waiting"),
    (1, False, False, "internal", "waiting"),
    (None, True, True, "", "building"),
    (1, True, True, "", "building"),
    (None, True, False, "", "interrupted"),
    (1, True, False, "", "waiting"),
]


@pytest.mark.parametrize(("asked", "open", "alive", "reason", "state"), STATES)
def test_the_state_of_a_build(
    asked: int | None, open: bool, alive: bool, reason: str, state: str
) -> None:
    build = Build(asked, 1, None if open else 2, "", 0, None, reason, "", open, alive)
    assert build.state == state


# a stream, its epoch, versions of registrations: what is said, nothing if it may be built
REFUSED = [
    (Stream(9, "shop", "orders", "auto", "sync"), None, 49_999, "From 50,000 versions"),
    (Stream(9, "shop", "orders", "auto", "sync"), None, 50_000, ""),
    (Stream(9, "shop", "orders", "auto", "sync"), 3, 0, ""),
    (Stream(9, "shop", "orders", "index", "sync"), None, 1, ""),
    (Stream(9, "shop", "orders", "index", "sync"), None, 0, "nothing to index"),
    (Stream(9, "shop", "orders", "auto", "sync"), None, 0, "nothing to index"),
    (Stream(9, "shop", "orders", "scan", "sync"), None, 1_000_000, "`scan`"),
    (Stream(9, "shop", "orders", "auto", "transient"), None, 1_000_000, "transient"),
    (Stream(1, None, "system", "auto", "sync"), None, 1_000_000, "in memory"),
]


@pytest.mark.parametrize(("stream", "epoch", "count", "said"), REFUSED)
def test_a_stream_without_use_for_an_index_has_the_reason(
    stream: Stream, epoch: int | None, count: int, said: str
) -> None:
    state = IndexState(epoch, 0, 0, 0, None, None, count, False, "")
    found = Standing(stream, state, None).refused
    assert said in found
    assert bool(found) == bool(said)
