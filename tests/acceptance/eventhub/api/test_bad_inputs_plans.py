"""Bad input to back-tests and retention plans: filters and policies that a run is refused for, and
plans that are not there.
"""

from typing import Any

import pytest

from tests.acceptance.bad_inputs import Bad, World
from tests.acceptance.eventhub.api.test_bad_inputs_jobs import JOBS, RUNS, ask, bad

pytestmark = pytest.mark.usefixtures("untouched")
STREAM = {"zone": "default", "stream": "system"}  # which is there in every zone
APPLY = f"{JOBS}/retention/runs/{{run}}/apply"


def filtered(name: str, outcome: str, at: dict[str, Any], **params: Any) -> Bad:
    status, code = outcome.split()
    body = {"params": {**STREAM, **params}}
    path = f"{JOBS}/backtest/runs"
    return Bad(name, f"POST {RUNS}", path, int(status), code, at, body=body, key="operator")


def tried(name: str, outcome: str, at: str, policy: Any) -> Bad:
    policies = {"system": policy}
    return ask(name, "retention", outcome, f"policies.system{at}", zone="default",
               policies=policies)  # fmt: skip


CASES = (
    filtered("an open form", "400 filter_syntax",
             {"field": "params.filter"}, filter="(and (> total 100)"),
    filtered("a wrong form in the second line", "400 filter_syntax",
             {"field": "params.filter"}, filter="(and (> a 1)\n (= b))"),
    filtered("pairs as a text", "400 invalid_field", {"field": "params.filter"},
             language="pairs", filter="a = 1"),
    filtered("a filter of pairs with an unknown field", "400 unknown_field",
             {"field": "params.filter.colour"}, language="pairs", filter={"colour": "red"}),
    filtered("a filter that is too deep", "422 filter_too_large", {"field": "params.filter"},
             filter="(not " * 100 + "true" + ")" * 100),
    tried("a policy that is a text", "400 invalid_field", "", "all"),
    tried("a field that no plan tries", "400 unknown_field", ".keyed", {"keyed": True}),
    tried("an age below one", "400 invalid_field", ".retain_age_s", {"retain_age_s": 0}),
    tried("a lag that there is not", "400 invalid_field", ".on_lag", {"on_lag": "wait"}),
    bad("a key", f"POST {APPLY}", f"{JOBS}/retention/runs/7/apply", "403 forbidden", key="admin",
        body={}),
    *(bad(f"run {number}", f"POST {APPLY}", f"{JOBS}/retention/runs/{number}/apply",
          "404 unknown_run", "run", body={}) for number in ("0", "x", "9" * 30)),
    bad("only a part of it", f"POST {APPLY}", f"{JOBS}/retention/runs/7/apply",
        "400 unknown_field", "streams", body={"streams": ["orders"]}),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.route}: {case.name}")
def test_bad_input_is_refused_with_code_and_position(world: World, case: Bad) -> None:
    world.check(case)


def test_a_mistake_in_a_filter_is_placed(world: World) -> None:
    body = {"params": {**STREAM, "filter": "(and (> a 1)\n (= b))"}}
    problem = world.hub.operate("POST", f"{JOBS}/backtest/runs", body).refused(400, "filter_syntax")
    assert (problem["line"], problem["column"]) == (2, 3)
