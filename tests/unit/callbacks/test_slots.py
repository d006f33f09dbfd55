"""Fair shares of the slots, and small ones for endpoints in trouble."""

from delivery.callbacks.slots import Slots
from eventhub import limits
from eventhub.clock import ManualClock

TOTAL = limits.CALLBACK_SLOTS_MAX
CAP = limits.CALLBACK_SLOTS_PER_ENDPOINT_MAX
NEW = limits.CALLBACK_SLOTS_NEW_ENDPOINT_MAX
UNPROVEN = limits.CALLBACK_SLOTS_UNPROVEN_MAX


def tried(slots: Slots, endpoint: int, outcome: str = "delivered", times: int = 1) -> None:
    for _ in range(times):
        slots.hold(endpoint)
        slots.ended(endpoint, slots.began(endpoint), outcome)
        slots.release(endpoint)


def take(slots: Slots, granted: dict[int, int]) -> list[tuple[int, int]]:
    taken = []
    for endpoint, count in granted.items():
        for _ in range(count):
            slots.hold(endpoint)
            taken.append((endpoint, slots.began(endpoint)))
    return taken


def test_a_new_endpoint_begins_small_and_doubles_with_good_answers() -> None:
    slots = Slots(ManualClock())
    granted = []
    for _ in range(6):
        granted.append(slots.grant([1])[1])
        tried(slots, 1)
    assert granted == [NEW, 2 * NEW, 4 * NEW, 8 * NEW, CAP, CAP]


def test_an_error_that_comes_quickly_is_an_answer() -> None:
    slots = Slots(ManualClock())
    tried(slots, 1, "status", times=9)
    assert slots.grant([1]) == {1: CAP}


def test_a_time_out_or_a_refused_connection_leaves_one_slot() -> None:
    for outcome in ("timeout", "connection", "unknown_host", "refused_address", "tls"):
        slots = Slots(ManualClock())
        tried(slots, 1, times=9)
        tried(slots, 1, outcome)
        assert slots.grant([1]) == {1: 1}
        tried(slots, 1)
        assert slots.grant([1]) == {1: 2}


def test_slots_are_shared_equally_and_never_more_than_there_are() -> None:
    slots = Slots(ManualClock())
    for endpoint in range(1, 17):
        tried(slots, endpoint, times=9)
    granted = slots.grant(range(1, 17))
    assert granted == dict.fromkeys(range(1, 17), TOTAL // 16)
    take(slots, granted)
    assert slots.free == 0
    assert slots.grant(range(1, 17)) == {}


def test_what_some_do_not_need_others_get() -> None:
    slots = Slots(ManualClock())
    for endpoint in range(1, 33):
        tried(slots, endpoint, times=9)
    take(slots, dict.fromkeys(range(1, 8), CAP))  # full
    granted = slots.grant(range(1, 33))
    assert sum(granted.values()) == TOTAL - 7 * CAP
    assert set(granted) <= set(range(8, 33))
    assert max(granted.values()) - min(granted.values()) <= 1


def test_endpoints_that_are_not_proven_leave_the_healthy_their_part() -> None:
    slots = Slots(ManualClock())
    for endpoint in range(1, 9):
        tried(slots, endpoint, times=9)
    unknown = range(100, 200)
    take(slots, slots.grant(unknown))
    assert slots.held == UNPROVEN
    assert slots.grant(unknown) == {}
    granted = slots.grant([*unknown, *range(1, 9)])
    assert set(granted) == set(range(1, 9))
    assert sum(granted.values()) == TOTAL - UNPROVEN


def test_an_endpoint_that_hangs_gets_no_more_before_it_times_out() -> None:
    clock = ManualClock()
    slots = Slots(clock)
    tried(slots, 1, times=9)
    take(slots, {1: 5})
    assert slots.grant([1]) == {1: CAP - 5}
    clock.advance_s(limits.CALLBACK_SLOW_S + 0.1)
    assert slots.grant([1]) == {}


def test_an_answer_that_takes_long_is_no_good_answer() -> None:
    clock = ManualClock()
    slots = Slots(clock)
    tried(slots, 1, times=9)
    slots.hold(1)
    request = slots.began(1)
    clock.advance_s(limits.CALLBACK_SLOW_S + 0.1)
    slots.ended(1, request, "delivered")
    slots.release(1)
    assert slots.grant([1]) == {1: 1}


def test_what_is_remembered_is_bounded() -> None:
    slots = Slots(ManualClock())
    take(slots, {-1: 2})
    for endpoint in range(limits.CALLBACK_ENDPOINTS_REMEMBERED_MAX + 10):
        tried(slots, endpoint)
    assert len(slots._endpoints) <= limits.CALLBACK_ENDPOINTS_REMEMBERED_MAX
    assert slots.held == 2
    slots.release(-1)
    slots.release(-1)
    assert slots.held == 0
