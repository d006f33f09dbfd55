"""Listeners in every filter language, on every transport: the same events, the same refusals."""

from typing import Any

import pytest
from eventhub_client.sync import SyncHubClient

from tests.acceptance.delivery.test_transports_contract import (
    chain,
    listener_spec,
    refusal,
    take,
)
from tests.acceptance.registrations.test_registration_languages import (
    EVENTS,
    EXPECTED,
    FILTERS,
    order,
)
from tests.acceptance.shell import Shell
from tests.acceptance.transports import Transport, each_transport
from tests.live import LiveZone

PAIRS = {"language": "pairs", "attributes": {"total": 12}}
REFUSED: tuple[tuple[dict[str, Any], str, dict[str, Any]], ...] = (
    (
        {"language": "predicate", "filter": "(and (= a 1)\n  (like user 'Joe))"},
        "filter_syntax",
        {"line": 2, "column": 4, "field": "filter"},
    ),
    (
        {"language": "ready", "filter": "shop::order | $total >"},
        "filter_syntax",
        {"line": 1, "column": 23, "field": "filter"},
    ),
    (
        {"language": "eventbridge", "filter": {"detail": {"total": 9}}},
        "invalid_field",
        {"field": "filter.detail.total"},
    ),
    ({"language": "sql", "filter": "total > 9"}, "unknown_language", {"field": "language"}),
    ({"language": "predicate"}, "missing_field", {"field": "filter"}),
    ({"filter": "(> total 9)"}, "invalid_field", {"field": "language"}),
    (
        {"language": "predicate", "filter": "(> total 9)", "type": "order"},
        "invalid_field",
        {"field": "type"},
    ),
    (
        {"language": "predicate", "filter": "(> total 9)", "registrations": [1]},
        "invalid_field",
        {"field": "registrations"},
    ),
    (
        {"language": "predicate", "filter": f"(= a '{'x' * 17_000})"},
        "filter_too_large",
        {"field": "filter"},
    ),
)


@pytest.fixture
def orders(zone: LiveZone) -> LiveZone:
    zone.create_stream("orders")
    for attributes in EVENTS:
        assert zone.emit("orders", order(attributes)).status == 200
    return zone


def links(sequences: list[int]) -> list[tuple[int, int]]:
    """Return `prev` and `sequence` of the events that a reader gets from the start."""
    return list(zip([0, *sequences], sequences, strict=False))


@pytest.mark.req("OIF-04")
@each_transport
async def test_a_listener_gets_the_events_that_match_its_filter_in_every_language(
    orders: LiveZone, transport: Transport
) -> None:
    for language, filter in FILTERS.items():
        spec = listener_spec(orders, language=language, filter=filter)
        expected = EXPECTED[language]
        found = await take(transport, spec, len(expected))
        assert chain(found) == links(expected), language
    assert chain(await take(transport, listener_spec(orders, **PAIRS), 1)) == [(0, 4)]
    masked = listener_spec(orders, mask="1", language="predicate", filter="true")
    orders.emit("orders", {**order({}), "mask": 1})
    assert chain(await take(transport, masked, 1)) == [(0, 5)]


@each_transport
async def test_an_invalid_filter_is_refused_with_its_position(
    orders: LiveZone, transport: Transport
) -> None:
    for selection, code, position in REFUSED:
        problem = (await refusal(transport, listener_spec(orders, **selection))).problem
        at = {**problem["position"], **{k: problem[k] for k in position if k in problem}}
        assert (problem["code"], {name: at.get(name) for name in position}) == (code, position), (
            selection
        )


def test_clients_and_the_command_line_take_every_language(orders: LiveZone) -> None:
    """Live, forward, backward, and on the command line, whose default language is predicate."""
    with SyncHubClient(orders.hub.url, orders.admin) as hub:
        for language, filter in FILTERS.items():
            selection = {"language": language, "filter": filter}
            expected = EXPECTED[language]
            live = hub.listen("orders", start="oldest", **selection)
            assert [next(live).sequence for _ in expected] == expected
            live.close()  # type: ignore[attr-defined]
            assert [one.sequence for one in hub.history("orders", **selection)] == expected
            back = hub.history("orders", order="backward", **selection)
            assert [one.sequence for one in back] == expected[::-1]
    shell = Shell(orders)
    for words, sequences in (
        (("--filter", str(FILTERS["predicate"])), [1, 4]),
        (("--language", "ready", "--filter", str(FILTERS["ready"])), [1, 4]),
        (
            (
                "--language",
                "eventbridge",
                "--filter",
                '{"detail": {"total": [{"numeric": ["<", 10]}]}}',
            ),
            [3],
        ),
    ):
        done = shell.run(
            "listen", "orders", "--from", "oldest", "--count", str(len(sequences)), *words
        )
        assert (done.status, [line["sequence"] for line in done.lines]) == (0, sequences), done
    bad = shell.run("listen", "orders", "--filter", "(> total")
    assert bad.status == 1
    assert "filter_syntax" in bad.err
    assert shell.run("listen", "orders", "--language", "ready").status == 2
