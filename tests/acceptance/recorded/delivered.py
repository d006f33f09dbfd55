"""Calls about deliveries, recorded listeners, jobs and their runs."""

import hashlib
import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from eventhub.base.arrow import leave_pandas_out
from tests.acceptance.recorded.access import ACTION
from tests.acceptance.recorded.call import Call, file, gets, if_match, sends, sql
from tests.acceptance.recorded.streams import stream_id

_AT = "'2001-02-03T04:05:06.000001Z'"
_ROWS = (
    # sequence, state, attempts, finished, gap_first, gap_reason
    f"(1, 'delivered', 2, {_AT}::timestamptz, NULL::bigint, NULL)",
    f"(2, 'dead_lettered', 15, {_AT}, NULL, NULL)",
    f"(3, 'dropped', 0, {_AT}, 2, 'backlog')",
    "(4, 'pending', 1, NULL, NULL, NULL)",
    f"(5, 'expired', 3, {_AT}, NULL, NULL)",
    f"(6, 'cancelled', 0, {_AT}, NULL, NULL)",
)
_WRITE_DELIVERIES = (
    "INSERT INTO deliveries (partition_id, endpoint_id, segment_id, sequence, stream_id,"
    " zone_id,"
    " registrations, state, attempts, next_attempt_at, created_at, finished_at, gap_first,"
    " gap_reason)"
    " SELECT g.partition_id, {endpoint}, g.id, d.sequence, s.id, s.zone_id, '{{<registration>}}',"
    f" d.state, d.attempts, {_AT}, CASE d.state WHEN 'pending' THEN now() ELSE {_AT} END,"
    " d.finished, d.gap, d.why"
    " FROM streams s JOIN segments g ON g.stream_id = s.id,"
    f" (VALUES {', '.join(_ROWS)}) AS d (sequence, state, attempts, finished, gap, why)"
    f" WHERE s.id = {stream_id('orders')}"
)
_TRY = (
    "INSERT INTO attempts SELECT '2001-02-03T04:05:0{0}Z'::timestamptz, partition_id, endpoint_id,"
    " segment_id, sequence, {0}, '{1}', {2}, 12, 'https://hooks.example/',"
    " 'webhook-id: msg_1', '{3}' FROM deliveries WHERE endpoint_id = <endpoint> AND sequence = 1"
)
DELIVERIES = [
    sql("CREATE TABLE deliveries_recorded PARTITION OF deliveries FOR VALUES IN (1)"),
    sql("CREATE TABLE attempts_recorded PARTITION OF attempts DEFAULT"),
    *(sql(_WRITE_DELIVERIES.format(endpoint=mark)) for mark in ("<endpoint>", "<theirendpoint>")),
    sql(_TRY.format(1, "timeout", "NULL", "no answer in 10 s")),
    sql(_TRY.format(2, "delivered", 204, "204 No Content")),
    Call("admin", "GET /v1/deliveries?endpoint=<endpoint>", keep={"<delivery>": "items.5.id"}),
    *gets(
        "admin",
        "/v1/deliveries?endpoint=<endpoint>&state=pending",
        "/v1/deliveries?endpoint=<endpoint>&stream=orders",
        "/v1/deliveries?endpoint=<endpoint>&stream=kept",
        "/v1/deliveries?endpoint=<endpoint>&limit=6&after=<delivery>",
        "/v1/deliveries?endpoint=<second>",
        "/v1/deliveries?stream=orders&sequence=4",
        "/v1/deliveries?stream=orders&sequence=4&state=pending",
        "/v1/deliveries?stream=orders&sequence=4&limit=1",
        "/v1/deliveries?stream=orders&sequence=99",
        "/v1/deliveries?state=dead_lettered",
        "/v1/deliveries?state=dead_lettered&client=peer",
        "/v1/deliveries?state=dead_lettered&stream=orders&limit=1",
        "/v1/deliveries?state=dropped",
        "/v1/deliveries?state=expired&stream=kept",
        "/v1/deliveries?state=cancelled&client=nobody",
        "/v1/deliveries",
        "/v1/deliveries?state=pending",
        "/v1/deliveries?state=lost",
        "/v1/deliveries?stream=orders",
        "/v1/deliveries?sequence=1",
        "/v1/deliveries?endpoint=1&stream=orders&sequence=1",
        "/v1/deliveries?endpoint=<endpoint>&client=tester",
        "/v1/deliveries?endpoint=x",
        "/v1/deliveries?endpoint=999999",
        "/v1/deliveries?endpoint=<endpoint>&after=1.2",
        "/v1/deliveries?endpoint=<endpoint>&limit=0",
        "/v1/deliveries?stream=nowhere&sequence=1",
        "/v1/deliveries?stream=a%20b&sequence=1",
        "/v1/deliveries?endpoint=<farendpoint>",
        "/v1/deliveries/<delivery>",
        "/v1/deliveries/999999.1.1.1.0",
        "/v1/deliveries/1",
        "/v1/deliveries/1.1.1.1.1.1",
        "/v1/deliveries/x",
    ),
    Call("admin", "GET /v1/deliveries?endpoint=<endpoint>&limit=1", keep={"<next>": "next"}),
    Call(
        "admin",
        "GET /v1/deliveries?endpoint=<endpoint>&limit=4&after=<next>",
        keep={"<gone>": "items.2.id", "<next>": "next"},
    ),
    Call("admin", "GET /v1/deliveries?endpoint=<endpoint>&limit=1&after=<next>"),
    Call("admin", "GET /v1/deliveries?state=dead_lettered&limit=1", keep={"<next>": "next"}),
    Call("admin", "GET /v1/deliveries?state=dead_lettered&limit=1&after=<next>"),
    Call("admin", "GET /v1/deliveries/<gone>"),
    *gets("listener", "/v1/deliveries?endpoint=<endpoint>&limit=1", "/v1/deliveries/<delivery>"),
    *gets("peer", "/v1/deliveries?endpoint=<endpoint>", "/v1/deliveries/<delivery>"),
    *gets("peer", "/v1/deliveries?state=dead_lettered", "/v1/deliveries?stream=orders&sequence=2"),
    *gets("emitter", "/v1/deliveries?state=dead_lettered", "/v1/deliveries/<delivery>"),
    *gets("operator", "/v1/deliveries/<delivery>?zone=<zone>", "/v1/deliveries/<delivery>"),
    Call("admin", "GET /v1/overview"),
]
_LISTENERS = (
    "INSERT INTO listeners SELECT ('2001-02-03T04:05:0' || l.id || 'Z')::timestamptz, l.id, z.id,"
    " c.id, l.stream, 'web-1', l.transport, l.name, l.start, NULL, l.id, l.mask, l.filter,"
    " l.registrations, 'w', NULL, l.id + 3, 3, '2001-02-03T05:00:00Z', l.ended, l.why"
    " FROM zones z JOIN clients c ON c.zone_id = z.id, (VALUES"
    " (1, {0}, 'websocket', 'one', 'oldest', -1, '(= n 1)', '{{}}'::bigint[],"
    " '2001-02-03T06:00:00.25Z'::timestamptz, 'stopped'),"
    " (2, {0}, 'sse', '', 'cursor', 1, NULL, '{{<registration>}}', NULL, NULL),"
    " (3, {1}, 'poll', '', 'boot', 9, 'true', '{{}}', '2001-02-03T06:00:00Z', 'disconnected'))"
    " AS l (id, stream, transport, name, start, mask, filter, registrations, ended, why)"
    " WHERE z.name = '<zone>' AND c.name = 'tester'"
).format(stream_id("orders"), stream_id("kept"))
LISTENERS = [
    sql("CREATE TABLE listeners_recorded PARTITION OF listeners DEFAULT"),
    sql(_LISTENERS),
    *(
        Call("admin", f"GET /v1/clients/{rest}")
        for rest in (
            "tester/listeners",
            "tester/listeners?stream=orders",
            "tester/listeners?stream=secret",
            "tester/listeners?stream=nowhere",
            "tester/listeners?stream=a%20b",
            "tester/listeners?limit=0",
            "tester/listeners?after=x",
            "tester/listeners?after=1.1",
            "nobody/listeners",
            "peer/listeners",
            "a%20b/listeners",
        )
    ),
    Call("admin", "GET /v1/clients/tester/listeners?limit=1", keep={"<next>": "next"}),
    Call("admin", "GET /v1/clients/tester/listeners?limit=2&after=<next>"),
    *gets("listener", "/v1/clients/tester/listeners", "/v1/clients/tester/listeners?stream=kept"),
    *gets("peer", "/v1/clients/tester/listeners", "/v1/clients/peer/listeners"),
    *gets("emitter", "/v1/clients/tester/listeners"),
    *gets("operator", "/v1/clients/tester/listeners?zone=<zone>"),
]
_RESULT: dict[str, Any] = {
    "summary": "All was delivered.",
    "figures": {"events": 3, "caf\u00e9": 1.5, "none": None},
    "verdict": "ok",
    "about": {"report.html": "The report."},
    "details": {"streams": [{"name": "orders", "expected": 3}]},
    "files": [
        {"name": name, "bytes": size, "sha256": "0" * 64, "about": "A file."}
        for name, size in (("report.html", 5), ("tables/a.csv", 8), ("x.bin", 3), ("lost.csv", 9))
    ],
}


def _run(job: str, state: str, **more: str) -> Call:
    """Return a run as a worker leaves it."""
    given = {"requested_by": "'timetable'", "params": "'{}'", **more}
    names, values = ", ".join(given), ", ".join(given.values())
    return sql(
        f"INSERT INTO job_runs (job, state, requested_at, {names}) VALUES"
        f" ('{job}', '{state}', '2001-02-03T04:05:06Z', {values})"
    )


_TIMES = {"started_at": "'2001-02-03T04:05:07Z'", "ended_at": "'2001-02-03T04:05:08.5Z'"}
RUNS = [
    _run(
        "audit", "completed", **_TIMES, verdict="'ok'", summary="'All was delivered.'",
        figures="'{\"events\": 3}'", engine="'spark local[2]'", result_bytes="15",
    ),
    _run("audit", "failed", **_TIMES, reason="'java_missing'", detail="'There is no Java.'"),
    _run("audit", "waiting", attempt="2", retry_of="2", not_before="'2099-01-01T00:00:00Z'"),
    _run("audit", "completed", **_TIMES, result_deleted="true", requested_by="'command'"),
    _run("audit", "cancelled", ended_at=_TIMES["ended_at"], reason="'cancelled'"),
    _run("backtest", "running", started_at=_TIMES["started_at"], phase="'reading events'",
         lease_expires_at="now() + interval '1 day'", stages="4", stages_done="1", tasks="9"),
    _run("match_index", "running", started_at=_TIMES["started_at"], publishing="true",
         lease_expires_at="now() + interval '1 day'"),
    _run("retention", "completed", **_TIMES),
    file("jobs/audit/00000001/result/result.json", json.dumps(_RESULT).encode()),
    file("jobs/audit/00000001/result/report.html", "<p>\u00e9".encode()),
    file("jobs/audit/00000001/result/tables/a.csv", b"a,b\n1,2\n"),
    file("jobs/audit/00000001/result/x.bin", b"\0\1\2"),
    file("jobs/audit/00000001/log.txt", "begun\nended \u2603\n".encode()),
]  # fmt: skip
_ACT: dict[str, Any] = {
    "zone": "zone-1",
    "stream": "old",
    "segment_id": 999_999,
    "segment": "00000000-0000-0000-0000-000000000000",
    "partition_id": 1,
    "first": 1,
    "last": 1,
    "bytes": 10,
    "action": "drop",
    "reason": "age",
}


def _plan() -> bytes:
    """Return a retention plan: what it drops is gone already."""
    leave_pandas_out()
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([_ACT, {**_ACT, "action": "keep"}]), out)
    return out.getvalue()


_PLAN = _plan()
_PLAN_FILE = {
    "name": "plan.parquet",
    "bytes": len(_PLAN),
    "sha256": hashlib.sha256(_PLAN).hexdigest(),
    "about": "The plan.",
}
_ASK = {"zone": "<zone>", "stream": "orders", "filter": "(> n 1)"}
JOBS = [
    Call("operator", "GET /v1/jobs"),
    *RUNS,
    *gets("operator", "/v1/jobs", "/v1/jobs?zone=<zone>", "/v1/jobs?job=audit"),
    *gets("admin", "/v1/jobs", "/v1/jobs/audit/runs", "/v1/jobs/audit/runs/1"),
    *(
        Call("operator", f"GET /v1/jobs/{rest}")
        for rest in (
            "audit/runs",
            "audit/runs?limit=1",
            "audit/runs?limit=2&after=5",
            "audit/runs?after=1",
            "audit/runs?after=x",
            "audit/runs?limit=0",
            "audit/runs?before=5",
            "other/runs",
            "retention/runs",
            *(f"audit/runs/{run}" for run in (1, 2, 3, 4, 5, 6, 0, "x", "9" * 30)),
            "backtest/runs/6",
            "match_index/runs/7",
            "other/runs/1",
            "audit/runs/1/log",
            "audit/runs/2/log",
            "audit/runs/99/log",
            "audit/runs/1/files/report.html",
            "audit/runs/1/files/tables/a.csv",
            "audit/runs/1/files/x.bin",
            "audit/runs/1/files/lost.csv",
            "audit/runs/1/files/result.json",
            "audit/runs/1/files/..%2flog.txt",
            "audit/runs/2/files/report.html",
            "audit/runs/4/files/report.html",
            "audit/runs/99/files/report.html",
        )
    ),
    *(
        Call("operator", f"POST /v1/jobs/{run}/cancel", {})
        for run in ("audit/runs/1", "backtest/runs/6", "match_index/runs/7", "audit/runs/99")
    ),
    Call("operator", "POST /v1/jobs/audit/runs/3/cancel", {"why": "late"}),
    Call("operator", "POST /v1/jobs/audit/runs/3/cancel", None, ACTION),
    Call("operator", "POST /v1/jobs/audit/runs/3/cancel", {}),
    *sends(
        "operator",
        "POST /v1/jobs/audit/runs",
        {},
        None,
        {"params": {"zone": "<zone>", "streams": ["orders", "kept"]}},
        {"params": {"zone": "<zone>", "streams": "orders", "since": "2001-02-03T04:05:06+01:00"}},
        {"params": {"since": "2001-02-03T04:05:06Z", "until": "2001-02-03T04:05:06Z"}},
        {"params": {"zone": "none"}},
        {"params": {"streams": ["orders"]}},
        {"params": {"zone": "<zone>", "streams": ["nowhere"]}},
        {"params": {"colour": 1}},
        {"force": True},
    ),
    *(
        Call("operator", "POST /v1/jobs/backtest/runs", {"params": {**_ASK, **more}})
        for more in (
            {},
            {"language": "pairs", "filter": {"type": "a"}, "sample_max": 5,
             "since": "2001-01-01T00:00:00Z", "until": "2001-01-02T00:00:00Z"},
            {"filter": "(> n"},
            {"filter": "(not " * 100 + "true" + ")" * 100},
            {"language": "sql"},
            {"sample_max": 1_001},
            {"stream": "nowhere"},
        )
    ),
    Call("operator", "POST /v1/jobs/backtest/runs", {"params": {"zone": "<zone>"}}),
    *(
        Call("operator", f"POST /v1/jobs/{job}/runs", {"params": {"zone": "<zone>", **params}})
        for job, params in (
            ("match_index", {"stream": "indexed", "engine": "local"}),
            ("match_index", {"stream": "indexed", "engine": "gpu"}),
            ("match_index", {}),
            ("retention", {}),
            ("retention", {"policies": {"orders": {"retain_events": 1, "hold": None}}}),
            ("retention", {"policies": {"orders": {"keyed": True}}}),
            ("retention", {"policies": {"orders": {"retain_events": 0}}}),
            ("retention", {"policies": {"nowhere": {}}}),
            ("other", {}),
        )
    ),
    Call("operator", "POST /v1/jobs/audit/runs", {}, if_match("1")),
    Call("admin", "POST /v1/jobs/audit/runs", {}),
    sql(
        "INSERT INTO job_runs (job, requested_by, params) SELECT 'audit', 'command', '{}'"
        " FROM generate_series(1, 20)"
    ),
    Call("operator", "POST /v1/jobs/audit/runs", {}),
    Call("operator", "GET /v1/jobs"),
    *(
        Call("operator", f"POST /v1/jobs/retention/runs/{run}/apply", {})
        for run in ("8", "1", "99", "x")
    ),
    file("jobs/retention/00000008/result/plan.parquet", _PLAN),
    file(
        "jobs/retention/00000008/result/result.json",
        json.dumps({**_RESULT, "files": [_PLAN_FILE]}).encode(),
    ),
    *sends("operator", "POST /v1/jobs/retention/runs/8/apply", {"streams": []}, {}, None),
    Call("admin", "POST /v1/jobs/retention/runs/8/apply", {}),
]  # fmt: skip
CALLS = [*DELIVERIES, *LISTENERS, *JOBS]
