"""The check values of OIF's rows over several events: the unit test feeds them to the engine, and a
test of the hub can emit them.
"""

from typing import Any, NamedTuple

from tests.unit.registrations.temporal.engines import SEED, logins


class Check(NamedTuple):
    """A pattern, the attributes of events, and its matches: the numbers of the events, from 1."""

    row: str
    pattern: str
    events: list[dict[str, Any]]
    matches: list[tuple[int, ...]]


_WORKED = logins((1, "u"), (2, "v"), (3, "u"), (4, "u"))
CHECKS = (
    Check("OIF-20", "(event (type 'a) (user ?u)) (event (type 'b) (user ?u))",
          [{"type": type, "user": user} for type, user in ("ap", "bq", "bp")], [(1, 3)]),
    Check("OIF-20", SEED, logins((1, "u"), (1, "u"), (1, "u"), (2, "u")), []),
    Check("OIF-21", SEED, _WORKED, [(1, 3, 4)]),
    Check("OIF-21", SEED, logins((3, "u"), (1, "u"), (4, "u")), [(2, 1, 3)]),
    Check("OIF-21", SEED, logins(("9:59:59", "u"), ("10:00:00", "u"), ("12:40:18", "u")),
          [(1, 2, 3)]),
    Check("OIF-21", SEED, logins(("12:40:18", "u"), ("9:05:00", "u"), ("13:00:00", "u")),
          [(2, 1, 3)]),
    Check("OIF-22", f"(memory 3) {SEED}", _WORKED, []),
    Check("OIF-22", f"(memory 10) {SEED}", _WORKED, [(1, 3, 4)]),
)  # fmt: skip
