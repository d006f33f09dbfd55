"""Bad input of the routes of the audit trail."""

import pytest

from tests.acceptance.bad_inputs import Bad, World

pytestmark = pytest.mark.usefixtures("untouched")
AUDIT = "/v1/audit"
ONE = f"{AUDIT}/{{sequence}}"


def bad(name: str, route: str, path: str, outcome: str, at: str = "") -> Bad:
    status, code = outcome.split()
    key = "" if code == "unauthenticated" else "admin"
    return Bad(name, route, path, int(status), code, {"field": at} if at else {}, key=key)


CASES = (
    bad("no key", f"GET {AUDIT}", AUDIT, "401 unauthenticated"),
    bad("no key", f"GET {ONE}", f"{AUDIT}/1", "401 unauthenticated"),
    *(bad(query, f"GET {AUDIT}", f"{AUDIT}?{query}", "400 invalid_field", query.split("=")[0])
      for query in ("kind=robot", "address=x", "address=10.0.0.0/33", "since=x", "until=today",
                    "all_zones=1", "limit=0", "after=x", "after=1.2")),
    *(bad(query, f"GET {AUDIT}", f"{AUDIT}?{query}", "400 invalid_name", query.split("=")[0])
      for query in ("client=a%20b", "key=", "command=a%20b")),
    bad("unknown", f"GET {AUDIT}", f"{AUDIT}?who=me", "400 unknown_field", "who"),
    bad("all zones", f"GET {AUDIT}", f"{AUDIT}?all_zones=true", "403 forbidden"),
    bad("no number", f"GET {ONE}", f"{AUDIT}/x", "404 unknown_event", "sequence"),
    bad("not yet", f"GET {ONE}", f"{AUDIT}/999999999", "404 unknown_event"),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.route}: {case.name}")
def test_bad_input_is_refused_with_code_and_position(world: World, case: Bad) -> None:
    world.check(case)
