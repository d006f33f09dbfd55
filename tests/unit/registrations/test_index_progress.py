"""The display of a build's progress, the state of a build, and the reason why a stream uses no
index.
"""

import pytest

from eventhub.base.clock import ManualClock
from registrations.match_index.builds.progress import ProgressDisplay
from registrations.match_index.builds.statements import IndexBuildNote, IndexStream
from registrations.match_index.builds.status import IndexStatus
from registrations.match_index.epochs.state import IndexState
from registrations.match_index.format.builder import BuildProgress

STEPS = [("read", 0), ("read", 500), ("read", 4_000), ("read", 9_000), ("written", 10_000)]


def output(*, terminal: bool) -> list[str]:
    """Return the output while each step takes two seconds."""
    clock, written = ManualClock(), list[str]()
    with ProgressDisplay("shop/orders", 10_000, clock, written.append, terminal) as watch:
        for stage, entries in STEPS:
            watch.show(BuildProgress(stage, entries))
            clock.advance_s(2)
    return written


def test_a_log_gets_a_line_for_each_stage_and_every_five_seconds() -> None:
    assert output(terminal=False) == [
        "shop/orders: read 0 of about 10,000\n",
        "shop/orders: read 9,000 of about 10,000, 1,500/s\n",
        "shop/orders: written 10,000\n",
    ]


def test_a_terminal_gets_one_line_that_changes_and_is_cleared_at_the_end() -> None:
    written = output(terminal=True)
    assert written[1] == "\r\x1b[Kshop/orders: read 500 of about 10,000, 250/s"
    assert len(written) == len(STEPS) + 1
    assert written[-1] == "\r\x1b[K"
    assert "\n" not in "".join(written)


# requested at, open, alive, reason: the state
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


@pytest.mark.parametrize(("requested_at", "is_open", "is_alive", "reason", "state"), STATES)
def test_the_state_of_a_build(
    requested_at: int | None, is_open: bool, is_alive: bool, reason: str, state: str
) -> None:
    build = IndexBuildNote(
        requested_at, 1, None if is_open else 2, "", 0, None, reason, "", is_open, is_alive
    )
    assert build.state == state


# a stream, its epoch, versions of registrations: the reason, empty if an index may be built
REFUSED = [
    (IndexStream(9, "shop", "orders", "auto", "sync"), None, 49_999, "from 50,000 versions"),
    (IndexStream(9, "shop", "orders", "auto", "sync"), None, 50_000, ""),
    (IndexStream(9, "shop", "orders", "auto", "sync"), 3, 0, ""),
    (IndexStream(9, "shop", "orders", "index", "sync"), None, 1, ""),
    (IndexStream(9, "shop", "orders", "index", "sync"), None, 0, "nothing to index"),
    (IndexStream(9, "shop", "orders", "auto", "sync"), None, 0, "nothing to index"),
    (IndexStream(9, "shop", "orders", "scan", "sync"), None, 1_000_000, "`scan`"),
    (IndexStream(9, "shop", "orders", "auto", "transient"), None, 1_000_000, "transient"),
    (IndexStream(1, None, "system", "auto", "sync"), None, 1_000_000, "in memory"),
]


@pytest.mark.parametrize(("stream", "epoch", "count", "said"), REFUSED)
def test_the_reason_why_a_stream_uses_no_index(
    stream: IndexStream, epoch: int | None, count: int, said: str
) -> None:
    state = IndexState(epoch, 0, 0, 0, None, None, count, False, "")
    found = IndexStatus(stream, state, None).refused
    assert said in found
    assert bool(found) == bool(said)
