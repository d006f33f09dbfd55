"""The order of the variables that a notification binds."""

import json

from delivery.bindings import bindings_header, bindings_json
from eventhub.eventlog.stored import Cursor


def test_bindings_ascend_as_the_registrations_do() -> None:
    variables = {10: "Ev2", 9: "Ev1"}
    assert [*json.loads(bindings_json(variables, Cursor("s", 1)))] == ["9", "10"]
    assert bindings_header(variables) == "9=Ev1,10=Ev2"
