"""The filters of listens: read aside, and nobody waits for all of another client's."""

import asyncio
from typing import cast

from delivery.listening.filtering import filter_of
from delivery.listening.request import Wish
from eventhub.access.authorizer import Authorizer
from eventhub.access.principal import Principal
from eventhub.base import limits

NO_AUTHORIZER = cast(Authorizer, None)  # no channels are named


def principal(client_id: int) -> Principal:
    return Principal(1, "k", client_id, f"client-{client_id}", 1, "z", (), None)


async def test_many_long_filters_of_one_client_keep_no_other_waiting() -> None:
    """All filters of a process had one queue, and one client could fill it."""
    tests = " ".join(f"(= name_{at} {at})" for at in range(30))
    long = Wish("orders", filter={"language": "predicate", "filter": f"(or {tests})"})
    assert len(long.filter["filter"]) > limits.FILTER_CHARS_INLINE  # type: ignore[index]
    done: list[int] = []

    async def read(client_id: int) -> None:
        wanted = await filter_of(NO_AUTHORIZER, principal(client_id), long)
        assert wanted.tree is not None
        done.append(client_id)

    clients = [*[1] * 30, 2, 3]
    await asyncio.gather(*(read(client) for client in clients))
    assert sorted(done) == clients
    assert max(done.index(2), done.index(3)) < 6, done


async def test_a_filter_that_lets_everything_through_is_none() -> None:
    for text in ("true", "(and " + "true " * 200 + ")"):
        wish = Wish("orders", filter={"language": "predicate", "filter": text})
        wanted = await filter_of(NO_AUTHORIZER, principal(1), wish)
        assert wanted.tree is None, text


async def test_a_turn_is_shorter_the_more_an_event_costs() -> None:
    """A wildcard counted as one test, however much it looked for, and many arms as one event."""
    stars = "*".join("ab"[n % 2] for n in range(2_000))
    for text, cost in (("(= a 1)", 1), ("(> (+ a b) 3)", 2), (f'(wildcard a "*{stars}*")', 2_000)):
        wish = Wish("orders", filter={"language": "predicate", "filter": text})
        wanted = await filter_of(NO_AUTHORIZER, principal(1), wish)
        assert wanted.cost == cost
        most = limits.LISTEN_TESTS_PER_SLICE_MAX // cost
        assert wanted.looks == min(limits.LISTEN_EVENTS_PER_SLICE_MAX, most)
    longest = '(wildcard a "' + "*a" * 8_100 + '*")'
    wish = Wish("orders", filter={"language": "predicate", "filter": longest})
    assert (await filter_of(NO_AUTHORIZER, principal(1), wish)).looks == 1, (
        "it gets on all the same"
    )
