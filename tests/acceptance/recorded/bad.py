"""The answers to all cases of bad input of the management API, as the tests of bad input have
them. They are for one comparison before and after a change, and are not kept.
"""

from typing import Any

from tests.acceptance.bad_inputs import Bad, World
from tests.acceptance.eventhub.api import (
    test_bad_inputs_groups,
    test_bad_inputs_interest,
    test_bad_inputs_jobs,
    test_bad_inputs_management,
    test_bad_inputs_open,
    test_bad_inputs_operators,
    test_bad_inputs_plans,
    test_bad_inputs_registrations,
    test_bad_inputs_types,
)
from tests.acceptance.recorded.placeholders import Placeholders
from tests.acceptance.recorded.stage import cut, shown
from tests.live import LiveHub

_CASES: tuple[tuple[Bad, ...], ...] = (
    test_bad_inputs_management.CASES,
    test_bad_inputs_groups.CASES,
    test_bad_inputs_interest.CASES,
    test_bad_inputs_jobs.CASES,
    test_bad_inputs_open.CASES,
    test_bad_inputs_open.NOWHERE,
    test_bad_inputs_operators.CASES,
    test_bad_inputs_plans.CASES,
    test_bad_inputs_registrations.CASES,
    test_bad_inputs_types.CASES,
)


def recorded(hub: LiveHub) -> list[dict[str, Any]]:
    """Return the answers to the tests of bad input on a new world."""
    world = World(hub)
    placeholders = Placeholders(world.keys.values())
    found: list[dict[str, Any]] = []
    for cases in _CASES:
        hub.sql("DELETE FROM login_attempts")
        for bad in cases:
            asked = {"who": bad.key or "nobody", "line": f"{_method(bad)} {cut(bad.path)}"}
            asked["case"] = bad.name
            if bad.body is not None:
                asked["sent"] = cut(bad.body)
            answer = shown(world.send(bad))
            found.append({"number": len(found) + 1, **asked, **placeholders.replaced(answer)})
    return found


def _method(bad: Bad) -> str:
    return bad.method or bad.route.split()[0]
