"""Fair shares of the slots, and small ones for failing endpoints."""

from collections.abc import Iterable

from delivery.callbacks.slots import CallbackSlots
from eventhub.base import limits
from eventhub.base.clock import ManualClock

TOTAL = limits.CALLBACK_SLOTS_MAX
CAP = limits.CALLBACK_SLOTS_PER_ENDPOINT_MAX
NEW = limits.CALLBACK_SLOTS_NEW_ENDPOINT_MAX
UNPROVEN = limits.CALLBACK_SLOTS_UNPROVEN_MAX
NEW_SHARE = limits.CALLBACK_SLOTS_NEW_MAX
FAILING_SHARE = limits.CALLBACK_SLOTS_TROUBLE_MAX
SLOW_S = limits.CALLBACK_SLOW_S + 0.1


def alone(endpoints: Iterable[int]) -> dict[int, int]:
    """Map each endpoint to a client of its own."""
    return {each: each for each in endpoints}


def tried(slots: CallbackSlots, endpoint: int, outcome: str = "delivered", times: int = 1) -> None:
    for _ in range(times):
        slots.hold(endpoint)
        slots.end_request(endpoint, slots.start_request(endpoint), outcome)
        slots.release(endpoint)


def take(slots: CallbackSlots, granted: dict[int, int]) -> list[tuple[int, int]]:
    taken = []
    for endpoint, count in granted.items():
        for _ in range(count):
            slots.hold(endpoint)
            taken.append((endpoint, slots.start_request(endpoint)))
    return taken


def test_a_new_endpoint_starts_small_and_doubles_with_successes() -> None:
    slots = CallbackSlots(ManualClock())
    granted = []
    for _ in range(6):
        granted.append(slots.grant(alone([1]))[1])
        tried(slots, 1)
    assert granted == [NEW, 2 * NEW, 4 * NEW, 8 * NEW, CAP, CAP]


def test_a_quick_error_halves_the_slots() -> None:
    """An endpoint that answers errors does not harm others; it starts small again after a
    success.
    """
    slots = CallbackSlots(ManualClock())
    tried(slots, 1, times=9)
    tried(slots, 1, "status")
    assert slots.grant(alone([1])) == {1: CAP // 2}
    tried(slots, 1, "status", times=9)
    assert slots.grant(alone([1])) == {1: 1}
    assert slots._state(1, 0.0) == "healthy"


def test_a_time_out_or_a_refused_connection_leaves_one_slot() -> None:
    for outcome in ("timeout", "connection", "unknown_host", "refused_address", "tls"):
        slots = CallbackSlots(ManualClock())
        tried(slots, 1, times=9)
        tried(slots, 1, outcome)
        assert slots.grant(alone([1])) == {1: 1}
        tried(slots, 1)
        assert slots.grant(alone([1])) == {1: 2}


def test_a_slot_takes_several_deliveries_of_an_endpoint_that_answers_quickly() -> None:
    clock = ManualClock()
    slots = CallbackSlots(clock)
    assert slots.per_slot(1) == 1
    tried(slots, 1)
    assert slots.per_slot(1) == 1  # it has not all its slots
    tried(slots, 1, times=8)
    assert slots.per_slot(1) == limits.CALLBACK_PER_SLOT_MAX
    for duration_s, count in ((0.005, 4), (0.015, 1), (1.0, 1)):
        for _ in range(40):
            request = slots.start_request(1)
            clock.advance_s(duration_s)
            slots.end_request(1, request, "delivered")
        assert slots.per_slot(1) == count


def test_an_endpoint_that_fails_exceeds_the_slots_it_has_left() -> None:
    slots = healthy([1])
    for _ in range(CAP):
        slots.hold(1)
    assert not slots.exceeds(1)
    slots.end_request(1, slots.start_request(1), "status")
    assert slots.exceeds(1)
    for _ in range(CAP // 2):
        slots.release(1)
    assert not slots.exceeds(1)


def test_slots_are_shared_equally_and_bounded() -> None:
    slots = CallbackSlots(ManualClock())
    for endpoint in range(1, 25):
        tried(slots, endpoint, times=9)
    while granted := slots.grant(alone(range(1, 25))):
        assert max(granted.values()) - min(granted.values()) <= 1
        assert sum(granted.values()) <= limits.CALLBACK_CLAIM_DELIVERIES_MAX
        take(slots, granted)
    assert 0 < slots.free < TOTAL * 0.03  # for new requests


def test_unused_shares_go_to_others() -> None:
    slots = CallbackSlots(ManualClock())
    for endpoint in range(1, 33):
        tried(slots, endpoint, times=9)
    full = TOTAL // CAP - 1
    take(slots, dict.fromkeys(range(1, full + 1), CAP))
    granted = slots.grant(alone(range(1, 33)))
    assert sum(granted.values()) >= 0.9 * (TOTAL - full * CAP)
    assert set(granted) <= set(range(full + 1, 33))
    assert max(granted.values()) - min(granted.values()) <= 1


def test_endpoints_that_are_not_healthy_leave_the_healthy_their_part() -> None:
    slots = CallbackSlots(ManualClock())
    for endpoint in range(1, 9):
        tried(slots, endpoint, times=9)
    unknown = range(100, 200)
    take(slots, slots.grant(alone(unknown)))
    assert slots.held == NEW_SHARE
    assert slots.grant(alone(unknown)) == {}
    granted = slots.grant(alone([*unknown, *range(1, 9)]))
    assert granted == dict.fromkeys(range(1, 9), CAP)


def test_new_endpoints_that_hang_make_room_for_other_new_ones_up_to_a_bound() -> None:
    clock = ManualClock()
    slots = CallbackSlots(clock)
    unknown = range(100, 1_100)
    seen: set[int] = set()
    for wave in range(1, UNPROVEN // NEW_SHARE + 1):
        granted = slots.grant(alone([each for each in unknown if each not in seen]))
        assert set(granted.values()) == {1}  # many wait, so each gets one
        seen.update(granted)
        take(slots, granted)
        assert slots.held == wave * NEW_SHARE
        clock.advance_s(SLOW_S)
    assert slots.grant(alone(unknown)) == {}
    assert slots.held == UNPROVEN
    assert slots.free == TOTAL


def test_failing_endpoints_take_nothing_from_new_ones() -> None:
    slots = CallbackSlots(ManualClock())
    failing, unknown = range(1, 500), range(1_000, 1_500)
    for endpoint in failing:
        tried(slots, endpoint, "timeout")
    take(slots, slots.grant(alone(failing)))
    assert slots.held == FAILING_SHARE
    granted = slots.grant(alone([*failing, *unknown]))
    assert set(granted) <= set(unknown)
    assert sum(granted.values()) == NEW_SHARE


def test_an_endpoint_that_hangs_gets_no_more_before_it_times_out() -> None:
    clock = ManualClock()
    slots = CallbackSlots(clock)
    tried(slots, 1, times=9)
    take(slots, {1: 5})
    assert slots.grant(alone([1])) == {1: CAP - 5}
    clock.advance_s(limits.CALLBACK_SLOW_S + 0.1)
    assert slots.grant(alone([1])) == {}


def test_a_slow_response_is_no_success() -> None:
    clock = ManualClock()
    slots = CallbackSlots(clock)
    tried(slots, 1, times=9)
    slots.hold(1)
    request = slots.start_request(1)
    clock.advance_s(limits.CALLBACK_SLOW_S + 0.1)
    slots.end_request(1, request, "delivered")
    slots.release(1)
    assert slots.grant(alone([1])) == {1: 1}


def test_the_memory_is_bounded() -> None:
    slots = CallbackSlots(ManualClock())
    take(slots, {-1: 2})
    for endpoint in range(limits.CALLBACK_ENDPOINTS_REMEMBERED_MAX + 10):
        tried(slots, endpoint)
    assert len(slots._endpoints) <= limits.CALLBACK_ENDPOINTS_REMEMBERED_MAX
    assert slots.held == 2
    slots.release(-1)
    slots.release(-1)
    assert slots.held == 0


def healthy(endpoints: Iterable[int], clock: ManualClock | None = None) -> CallbackSlots:
    slots = CallbackSlots(clock or ManualClock())
    for endpoint in endpoints:
        tried(slots, endpoint, times=9)
    return slots


def hang(slots: CallbackSlots, clients: dict[int, int]) -> list[tuple[int, int]]:
    """Grant slots until none is left, to requests that never end."""
    taken = []
    while granted := slots.grant(clients):
        taken += take(slots, granted)
    return taken


def test_other_clients_have_slots_while_healthy_endpoints_of_many_clients_hang() -> None:
    """The story: one client was limited to two thirds, so two of them held all slots of a
    worker.
    """
    everybody = {each: each // 100 for each in range(100, 3_000)}
    for clients, free in ((1, TOTAL // 3), (2, 3 * CAP), (5, 3)):
        slots = healthy(everybody)
        hang(slots, {each: client for each, client in everybody.items() if client <= clients})
        assert slots.free >= free
        [other] = slots.grant({2_950: 29}).values()
        assert other >= min(CAP, max(1, (2 * slots.free) // 3))


def test_one_client_has_two_thirds_of_the_slots() -> None:
    slots = healthy(range(1, 41))
    taken = hang(slots, dict.fromkeys(range(1, 25), 7))  # 24 times 32 slots are more than there are
    assert slots.held == TOTAL * 2 // 3
    assert slots.grant({30: 7}) == {}
    for endpoint, _ in taken:
        slots.release(endpoint)
    assert slots.grant({30: 7}) == {30: CAP}


def test_healthy_endpoints_that_hang_delay_others_of_their_client_only_briefly() -> None:
    """The story: they held its slots until their requests timed out, for 12 s. New endpoints waited
    for as long, because hanging requests counted against their share.
    """
    clock = ManualClock()
    slots = healthy(range(1, 41), clock)
    hang(slots, dict.fromkeys(range(1, 25), 7))
    assert slots.grant({30: 7, 99: 7}) == {}
    clock.advance_s(SLOW_S)
    assert slots.free == TOTAL
    assert slots.grant({1: 7, 30: 7, 99: 7}) == {30: CAP, 99: NEW}


def test_hanging_requests_without_a_slot_are_bounded() -> None:
    clock = ManualClock()
    slots = healthy(range(1, 200), clock)
    for wave in range(6):
        hang(slots, dict.fromkeys(range(1 + 30 * wave, 31 + 30 * wave), wave))
        clock.advance_s(SLOW_S)
    assert limits.CALLBACK_HANGING_MAX < slots.held <= TOTAL + limits.CALLBACK_HANGING_MAX


def test_a_client_holds_no_more_than_its_share_of_the_bytes() -> None:
    slots = CallbackSlots(ManualClock())
    most = limits.CALLBACK_BYTES_HELD_MAX
    clients = {1: 1, 2: 1, 3: 2}
    assert slots.grant(clients).keys() == {1, 2, 3}
    slots.hold(1, most * 7 // 10)
    assert slots.grant(clients).keys() == {3}
    slots.hold(3, most - most * 7 // 10)
    assert slots.grant({**clients, 4: 4}) == {}
    slots.release(1, most * 7 // 10)
    assert slots.grant(clients).keys() == {1, 2, 3}


def test_claims_leave_bytes_for_clients_that_hold_none() -> None:
    """Two clients with large events and slow receivers held all bytes, and a third got nothing."""
    slots, clients = CallbackSlots(ManualClock()), {1: 1, 2: 2, 3: 3}
    for endpoint in (1, 2):
        for _ in range(100):
            if endpoint not in slots.grant({endpoint: clients[endpoint]}):
                break
            slots.hold(endpoint, slots.bytes_per_claim)
            slots.end_request(endpoint, slots.start_request(endpoint), "delivered")
        assert endpoint not in slots.grant(clients)
    assert slots.grant(clients).keys() == {3}
    assert slots.bytes_per_claim > limits.EVENT_BYTES_MAX


def test_large_events_take_their_bytes_of_a_claim() -> None:
    """Each claim took as many deliveries as there were slots, and gave most of them back."""
    endpoints = range(1, 33)
    slots = healthy(endpoints)
    for endpoint in endpoints:
        slots.hold(endpoint, 8 * limits.EVENT_BYTES_MAX, 8)
        slots.release(endpoint, 8 * limits.EVENT_BYTES_MAX)
    fitting = limits.CALLBACK_CLAIM_BYTES_MAX // limits.EVENT_BYTES_MAX
    assert sum(slots.grant(dict.fromkeys(endpoints, 1)).values()) == fitting
    assert slots.large_events([1, 2, 99]) == dict.fromkeys((1, 2), limits.EVENT_BYTES_MAX)
