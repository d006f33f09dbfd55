"""Bad input of the routes of jobs and their runs."""

from typing import Any

import pytest

from tests.acceptance.bad_inputs import Bad, World

pytestmark = pytest.mark.usefixtures("untouched")
JOBS = "/v1/jobs"
RUNS = f"{JOBS}/{{job}}/runs"
RUN = f"{RUNS}/{{run}}"
STREAM = {"zone": "default", "stream": "orders"}
PATTERN = {"zone": "default", "pattern": "{a: A}; {b: B}"}


def bad(name: str, route: str, path: str, outcome: str, at: str = "", **more: Any) -> Bad:
    status, code = outcome.split()
    more.setdefault("key", "operator")
    return Bad(name, route, path, int(status), code, {"field": at} if at else {}, **more)


def ask(name: str, job: str, outcome: str, at: str = "", **params: Any) -> Bad:
    path, field = f"{JOBS}/{job}/runs", f"params.{at}" if at else ""
    return bad(name, f"POST {RUNS}", path, outcome, field, body={"params": params})


CASES = (
    bad("a key", f"GET {JOBS}", JOBS, "403 forbidden", key="admin"),
    bad("no key", f"GET {JOBS}", JOBS, "401 unauthenticated", key=""),
    bad("query", f"GET {JOBS}", f"{JOBS}?job=audit", "400 unknown_field", "job"),
    *(bad(f"a key {route}", route, f"{JOBS}/audit/runs{rest}", "403 forbidden", key="admin",
          body={} if route.startswith("POST") else None)
      for route, rest in ((f"GET {RUNS}", ""), (f"POST {RUNS}", ""), (f"GET {RUN}", "/1"),
                          (f"POST {RUN}/cancel", "/1/cancel"), (f"GET {RUN}/log", "/1/log"),
                          (f"GET {RUN}/files/{{path}}", "/1/files/report.html"))),
    bad("no such job", f"GET {RUNS}", f"{JOBS}/other/runs", "404 unknown_job", "job"),
    bad("no such job", f"POST {RUNS}", f"{JOBS}/other/runs", "404 unknown_job", "job", body={}),
    *(bad(f"query {query}", f"GET {RUNS}", f"{JOBS}/audit/runs?{query}", outcome,
          query.split("=")[0])
      for query, outcome in (("limit=0", "400 invalid_field"), ("after=x", "400 invalid_field"),
                             ("state=failed", "400 unknown_field"))),
    bad("params a list", f"POST {RUNS}", f"{JOBS}/audit/runs", "400 invalid_field", "params",
        body={"params": []}),
    bad("unknown field", f"POST {RUNS}", f"{JOBS}/audit/runs", "400 unknown_field", "force",
        body={"force": True}),
    ask("unknown parameter", "audit", "400 unknown_field", "stream", stream="orders"),
    ask("no such zone", "audit", "404 not_found", "zone", zone="nowhere"),
    ask("zone no name", "audit", "400 invalid_name", "zone", zone="a b"),
    ask("streams of no zone", "audit", "400 missing_field", "zone", streams=["orders"]),
    ask("no such stream", "audit", "404 unknown_stream", "streams", zone="default",
        streams=["nowhere"]),
    ask("streams a number", "audit", "400 invalid_field", "streams", zone="default", streams=5),
    ask("streams with a comma", "audit", "400 invalid_name", "streams.0", zone="default",
        streams="orders,payments"),
    ask("one stream as a text", "audit", "404 unknown_stream", "streams", zone="default",
        streams="nowhere"),
    ask("a time without its offset", "audit", "400 invalid_field", "since",
        since="2026-11-21T08:00:00"),
    ask("an end before the begin", "audit", "400 invalid_field", "until",
        since="2026-11-21T08:00:00Z", until="2026-11-21T08:00:00Z"),
    ask("no filter", "backtest", "400 missing_field", "filter", **STREAM),
    ask("no stream", "backtest", "400 missing_field", "stream", zone="default", filter="(> a 1)"),
    ask("no such language", "backtest", "400 invalid_field", "language", **STREAM,
        language="sql", filter="a > 1"),
    ask("more shown than there may be", "backtest", "400 invalid_field", "sample_max", **STREAM,
        filter="(> a 1)", sample_max=1_001),
    ask("no such engine", "backtest", "400 invalid_field", "engine", **STREAM, filter="(> a 1)",
        engine="duckdb"),
    ask("a filter over streams", "backtest", "400 invalid_field", "streams", **STREAM,
        filter="(> a 1)", streams=["orders"]),
    ask("a filter once", "backtest", "400 invalid_field", "once", **STREAM, filter="(> a 1)",
        once=True),
    ask("a filter in a language of patterns", "backtest", "400 invalid_field", "language",
        **STREAM, language="temporal", filter="(event (a ?a))"),
    ask("a pattern without streams", "backtest", "400 missing_field", "streams", **PATTERN),
    ask("a pattern on a stream", "backtest", "400 invalid_field", "stream", **PATTERN,
        stream="orders", streams=["orders"]),
    ask("a pattern and a filter", "backtest", "400 invalid_field", "filter", **PATTERN,
        streams=["orders"], filter="(> a 1)"),
    ask("a pattern in a language of filters", "backtest", "400 invalid_field", "language",
        **PATTERN, streams=["orders"], language="predicate"),
    ask("a stream named twice", "backtest", "400 invalid_field", "streams.1", **PATTERN,
        streams=["orders", "orders"]),
    ask("too many streams", "backtest", "400 invalid_field", "streams", **PATTERN,
        streams=[f"s{number}" for number in range(17)]),
    ask("no such stream of a pattern", "backtest", "404 unknown_stream", "streams", **PATTERN,
        streams=["nowhere"]),
    ask("an agent once", "backtest", "400 invalid_field", "once", zone="default",
        streams=["system"], language="agent", pattern="(notify (event))", once=True),
    ask("an engine that there is not", "match_index", "400 invalid_field", "engine", **STREAM,
        engine="gpu"),
    ask("policies of no zone", "retention", "400 missing_field", "zone", policies={}),
    ask("policies a list", "retention", "400 invalid_field", "policies", zone="default",
        policies=[]),
    ask("a policy of no stream", "retention", "404 unknown_stream", "policies.nowhere",
        zone="default", policies={"nowhere": {}}),
    *(bad(f"run {number} {method}", f"{method} {RUN}{rest}", f"{JOBS}/audit/runs/{number}{rest}",
          "404 unknown_run", "run", body={} if method == "POST" else None)
      for number in ("0", "x", "9" * 30)
      for method, rest in (("GET", ""), ("POST", "/cancel"), ("GET", "/log"))),
    bad("a file of no run", f"GET {RUN}/files/{{path}}", f"{JOBS}/audit/runs/7/files/report.html",
        "404 unknown_run", "run"),
    bad("cancel with a reason", f"POST {RUN}/cancel", f"{JOBS}/audit/runs/7/cancel",
        "400 unknown_field", "why", body={"why": "late"}),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.route}: {case.name}")
def test_bad_input_is_refused_with_code_and_position(world: World, case: Bad) -> None:
    world.check(case)


@pytest.mark.parametrize(
    ("language", "text", "code", "column"),
    [
        ("ready", "{a: A};\n{b B}", "filter_syntax", 4),
        ("temporal", "\n(event (a ?a", "temporal_syntax", 8),
        ("agent", "\n(notify (nothing))", "program_syntax", 10),
    ],
)
def test_a_mistake_in_a_pattern_is_refused_with_its_line_and_column(
    world: World, language: str, text: str, code: str, column: int
) -> None:
    params = {"zone": "default", "streams": ["system"], "language": language, "pattern": text}
    path = f"{JOBS}/backtest/runs"
    problem = world.hub.operate("POST", path, {"params": params}).refused(400, code)
    assert problem["position"]["field"] == "params.pattern"
    assert (problem["line"], problem["column"]) == (2, column)
