"""The tables of formulas, evaluated as trees."""

import pytest

from eventhub.event.inbound import from_objects, stored_bytes
from eventhub.event.protobuf_codec import decode
from registrations.filters.evaluate import holds
from registrations.filters.languages import parse
from tests.unit.registrations.filters.formulas import TABLES, Table


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.row)
def test_formulas_hold_for_the_events_of_the_table(table: Table) -> None:
    payloads = (stored_bytes(one, client="c", mask=1) for one in from_objects([*table.events]))
    events = [decode(payload) for payload in payloads]
    for text, expected in table.formulas.items():
        node = parse(table.language, text).node
        assert tuple(n for n, one in enumerate(events) if holds(node, one)) == expected, text
