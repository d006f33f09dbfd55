"""Filters of listeners are read in a thread, in fair order between clients."""

import asyncio
from typing import cast

from delivery.listening.filtering import compile_filter
from delivery.listening.request import ListenRequest
from eventhub.access.authorizer import Authorizer
from eventhub.access.principal import Principal
from eventhub.base import limits

NO_AUTHORIZER = cast(Authorizer, None)  # no channels are named


def principal(client_id: int) -> Principal:
    return Principal(1, "k", client_id, f"client-{client_id}", 1, "z", (), None)


async def test_many_long_filters_of_one_client_do_not_delay_other_clients() -> None:
    """All filters of a process had one queue, which one client could fill."""
    tests = " ".join(f"(= name_{at} {at})" for at in range(30))
    long = ListenRequest("orders", filter={"language": "predicate", "filter": f"(or {tests})"})
    assert len(long.filter["filter"]) > limits.FILTER_CHARS_INLINE  # type: ignore[index]
    done: list[int] = []

    async def read(client_id: int) -> None:
        compiled = await compile_filter(NO_AUTHORIZER, principal(client_id), long)
        assert compiled.tree is not None
        done.append(client_id)

    clients = [*[1] * 30, 2, 3]
    await asyncio.gather(*(read(client) for client in clients))
    assert sorted(done) == clients
    assert max(done.index(2), done.index(3)) < 6, done


async def test_a_filter_that_matches_every_event_has_no_tree() -> None:
    for text in ("true", "(and " + "true " * 200 + ")"):
        request = ListenRequest("orders", filter={"language": "predicate", "filter": text})
        compiled = await compile_filter(NO_AUTHORIZER, principal(1), request)
        assert compiled.tree is None, text


async def test_an_expensive_filter_evaluates_fewer_events_per_slice() -> None:
    """A wildcard counted as one test, regardless of its length."""
    stars = "*".join("ab"[n % 2] for n in range(2_000))
    for text, cost in (("(= a 1)", 1), ("(> (+ a b) 3)", 2), (f'(wildcard a "*{stars}*")', 2_000)):
        request = ListenRequest("orders", filter={"language": "predicate", "filter": text})
        compiled = await compile_filter(NO_AUTHORIZER, principal(1), request)
        assert compiled.cost == cost
        most = limits.LISTEN_TESTS_PER_SLICE_MAX // cost
        assert compiled.events_per_slice == min(limits.LISTEN_EVENTS_PER_SLICE_MAX, most)
    longest = '(wildcard a "' + "*a" * 8_100 + '*")'
    request = ListenRequest("orders", filter={"language": "predicate", "filter": longest})
    compiled = await compile_filter(NO_AUTHORIZER, principal(1), request)
    assert compiled.events_per_slice == 1, "it still makes progress"
