"""Query parameters that a hot route does not have."""

import re

import pytest

from eventhub.http.routes import Route
from tests.acceptance.bad_inputs import HOT_ROUTES, Bad, World

pytestmark = pytest.mark.usefixtures("untouched")
PLACES = {"stream": "orders", "session": "<session>", "segment": "<open>", "sequence": "1"}


def _case(route: Route) -> Bad:
    path = re.sub(r"\{(\w+)\}", lambda found: PLACES[found[1]], route.path)
    name, at = f"{route.method} {route.path}", {"field": "colour"}
    return Bad("unknown parameter", name, f"{path}?colour=red", 400, "unknown_field", at)


CASES = tuple(_case(route) for route in HOT_ROUTES if route.authenticates)
OPEN = tuple(route.path for route in HOT_ROUTES if not route.authenticates)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.route)
def test_an_unknown_query_parameter_is_refused(world: World, case: Bad) -> None:
    """A stranger does not learn which parameters there are."""
    world.check(case)
    world.check(case._replace(key="", status=401, code="unauthenticated", at={}))


def test_each_open_route_ignores_its_query(world: World) -> None:
    """Load balancers and scrapers add parameters of their own, and so do providers."""
    assert sorted(OPEN) == ["/healthz", "/metrics", "/readyz", "/v1/webhooks/{token}"]
    for path in sorted(OPEN)[:3]:
        assert world.hub.call("GET", f"{path}?colour=red").status == 200
