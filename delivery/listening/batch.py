"""How much a listen is told at a time, and the hot loop where its mask alone decides.
Plain module.
"""

from dataclasses import dataclass

from delivery.listening.frames import Form, Heading, T
from delivery.listening.protocol import Listen
from delivery.listening.restricted import is_restricted
from eventhub.base import limits
from eventhub.eventlog.stored import StoredEvent


@dataclass(slots=True)
class Turn:
    """How much is told at a time; who asks may change it on the way."""

    events_max: int = limits.FRAMES_PER_SLICE_MAX
    bytes_max: int = limits.SOCKET_WRITE_BYTES_MAX


TURN = Turn()


def tell_plain(
    listen: Listen,
    form: Form[T],
    run: tuple[list[StoredEvent], int, int],
    turn: Turn,
    told: list[T],
) -> int:
    """The hot loop of a listen whose mask alone decides: an event is not decoded unless something
    in it may restrict who is told. `run`: events, where they begin in the page, the time.
    """
    events, at, now_us = run
    wanted, missed = listen.filter, listen.missed
    mask, head = wanted.mask, listen.started_head
    heading = Heading(listen.name_json, listen.told, missed)
    size = 0
    for stored in events:
        if len(told) >= turn.events_max or size > turn.bytes_max:
            break
        at += 1
        if not stored.mask & mask:
            continue
        restricted = stored.restricted
        if restricted is None:
            restricted = is_restricted(stored)
        if restricted and not wanted.wants(stored, now_us):
            continue
        sequence = stored.sequence
        heading.liveness = "live" if sequence > head else missed
        told.append(form.event(heading, stored))
        heading.prev = sequence
        size += len(stored.payload)
    listen.told = heading.prev
    return at
