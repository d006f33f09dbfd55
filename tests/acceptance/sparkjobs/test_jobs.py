"""Jobs by the API and the command: requested, listed, cancelled, performed, and their results. The
job `backtest` is a tiny stand-in.
"""

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eventhub.base import limits
from tests.integration.jobs_world import spark_environment
from tests.live import Answer, LiveHub, LiveZone
from tests.live_processes import MANAGE

RUNS = "/v1/jobs/backtest/runs"
ROOT = Path(MANAGE).parent
MADE_UP = ("--param", "zone=a", "--param", "stream=b", "--param", "filter=(> c 1)")
COMMAND = re.compile(
    r"^ *(?:\S*python )?manage\.py ((?:sparkjob|retention plan)\b.*)", re.MULTILINE
)
INVALID: list[tuple[list[str], str]] = [
    ([], "Name a job, or `history` and a job"),
    (["history"], "Name a job, or `history` and a job"),
    (["audit", "backtest"], "Name a job, or `history` and a job"),
    (["backtest", "--param", "zone"], "zone has no `=`"),
    (["backtest", "--params", "[]"], "--params must be a JSON object"),
    (["backtest", "--params", "{"], "--params: Not JSON"),
    (["backtest", "--params", "[" * 50_000], "--params: The JSON is nested too deeply"),
    (["backtest", "--param", "filter={"], "params.filter: Not JSON"),
    (["backtest"], "params.zone"),
    (["audit", "--param", "zone=nowhere"], "params.zone: There is no such zone."),
    (["audit", "--param", "zone=2026"], "params.zone: There is no such zone."),
    (
        ["backtest", *MADE_UP, "--param", "sample_max=many"],
        "params.sample_max: This must be an integer.",
    ),
]
# Prints the status and output of each command in its last line; one process, since starts are slow.
RUN_ALL = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
import manage
done = []
for words in json.loads(sys.stdin.read()):
    status, said = 0, io.StringIO()
    sys.argv = ["manage.py", *words]
    try:
        with redirect_stdout(said), redirect_stderr(said):
            manage.main()
    except SystemExit as end:
        status = end.code
    done.append((status, said.getvalue()))
print(json.dumps(done))
"""


@pytest.fixture(autouse=True)
def no_runs(hub: LiveHub) -> Iterator[None]:
    yield
    hub.sql("DELETE FROM job_runs")


def params_of(zone: LiveZone, **more: Any) -> dict[str, Any]:
    return {"zone": zone.name, "stream": "orders", "filter": "(> total 100)", **more}


def request_run(zone: LiveZone, **more: Any) -> Answer:
    return zone.hub.operate("POST", RUNS, {"params": params_of(zone, **more)})


def command(hub: LiveHub, *words: str) -> tuple[int, str]:
    """Run `manage.py sparkjob WORDS`; return its status and output."""
    env = {**os.environ, **hub.env, **spark_environment()}
    argv = [sys.executable, MANAGE, "sparkjob", *words]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def commands(hub: LiveHub, several: list[list[str]], **env: str) -> list[tuple[int, str]]:
    """Run several `manage.py WORDS`; return the status and output of each."""
    env = {**os.environ, **hub.env, **spark_environment(), **env}
    argv = [sys.executable, "-c", RUN_ALL]
    words = json.dumps(several)
    done = subprocess.run(argv, env=env, cwd=ROOT, input=words, capture_output=True, text=True,
                          check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [(status, said) for status, said in json.loads(done.stdout.splitlines()[-1])]


def documented(zone: str) -> Iterator[list[str]]:
    """Yield the words of each command in the pages about jobs, with another zone."""
    for name in ("jobs", "audit", "backtest", "retention"):
        text = (ROOT / "docs" / f"{name}.md").read_text().replace("\\\n", " ")
        for line in COMMAND.findall(text):
            words = shlex.split(line, comments=True)
            yield [re.sub(r"\b(acme|default)\b", zone, word) for word in words]


def test_jobs_are_listed_with_their_schedule_and_spark(hub: LiveHub) -> None:
    found = hub.operate("GET", "/v1/jobs").json
    jobs = {job["name"]: job for job in found["jobs"]}
    assert set(jobs) == {"audit", "backtest", "match_index", "retention"}
    assert jobs["audit"]["schedule"] == "every day at 02:30 UTC"
    assert jobs["audit"]["next_at"].endswith("T02:30:00.000000Z")
    assert (jobs["backtest"]["schedule"], jobs["backtest"]["next_at"]) == (None, None)
    assert all(job["running"] is job["last"] is None for job in jobs.values())
    assert found["spark"]["master"].startswith("local[")
    assert found["spark"]["problem"] == ""
    assert found["spark"]["java"].startswith(("17", "21"))


def test_a_run_is_requested_shown_announced_and_cancelled(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("orders")
    answer = request_run(zone, since="2026-11-21T10:00:00+02:00")
    assert answer.status == 202, answer
    run = answer.json
    assert (run["state"], run["requested_by"], run["job"]) == ("waiting", "operator", "backtest")
    assert run["params"] == params_of(
        zone, since="2026-11-21T08:00:00.000000Z", language="predicate", sample_max=100
    )
    assert answer.headers["eventhub-caused"], "its announcement is named"
    path = f"{RUNS}/{run['id']}"
    assert hub.operate("GET", path).json == {**run, "details": {}, "files": []}
    assert hub.operate("GET", f"{path}/log").body == b""
    hub.operate("GET", f"{path}/files/report.html").refused(404, "not_found")
    hub.operate("GET", f"/v1/jobs/audit/runs/{run['id']}").refused(404, "unknown_run")

    cancelled = hub.operate("POST", f"{path}/cancel", {})
    assert (cancelled.status, cancelled.json["state"]) == (202, "cancelled")
    assert cancelled.json["reason"] == "cancelled"
    assert cancelled.headers["eventhub-caused"], "its end is announced too"
    hub.operate("POST", f"{path}/cancel", {}).refused(409, "run_over")
    [last] = [job["last"] for job in hub.operate("GET", "/v1/jobs").json["jobs"] if job["last"]]
    assert last["id"] == run["id"]


def test_runs_are_paginated_and_the_number_of_waiting_ones_is_bounded(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders")
    ids = [request_run(zone).json["id"] for _ in range(limits.JOB_RUNS_WAITING_MAX)]
    request_run(zone).refused(409, "too_many_runs")
    found: list[int] = []
    after = ""
    while after is not None:
        page = hub.operate("GET", f"{RUNS}?limit=7{after and f'&after={after}'}").json
        found += [run["id"] for run in page["items"]]
        after = page["next"]
    assert found == sorted(ids, reverse=True)


def test_a_publishing_run_cannot_be_cancelled_and_deleted_files_are_reported(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders")
    run = request_run(zone).json["id"]
    path = f"{RUNS}/{run}"
    hub.sql(
        "UPDATE job_runs SET state = 'running', publishing = true,"
        " lease_expires_at = now() + interval '1 hour' WHERE id = %s",
        run,
    )
    hub.operate("POST", f"{path}/cancel", {}).refused(409, "run_publishing")
    hub.sql("UPDATE job_runs SET state = 'completed', result_deleted = true WHERE id = %s", run)
    hub.operate("GET", f"{path}/files/report.html").refused(410, "result_deleted")
    shown = hub.operate("GET", path).json
    assert (shown["result_deleted"], shown["files"], shown["details"]) == (True, [], {})


def test_a_result_in_the_data_folder_of_another_machine_is_refused_with_the_reason(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders")
    run = request_run(zone).json["id"]
    hub.sql("UPDATE job_runs SET state = 'completed' WHERE id = %s", run)
    for path in ("files/report.html", "log"):
        hub.operate("GET", f"{RUNS}/{run}/{path}").refused(404, "result_elsewhere")


def test_a_retry_is_shown_with_its_job_until_it_is_cancelled(hub: LiveHub) -> None:
    [[first]] = hub.sql(
        "INSERT INTO job_runs (job, requested_by, params, state, reason, ended_at)"
        " VALUES ('audit', 'schedule', '{}', 'failed', 'java_slow', now()) RETURNING id"
    )
    [[retry]] = hub.sql(
        "INSERT INTO job_runs (job, requested_by, params, attempt, retry_of, not_before)"
        " VALUES ('audit', 'schedule', '{}', 2, %s, now() + interval '5 minutes') RETURNING id",
        first,
    )
    jobs = {job["name"]: job for job in hub.operate("GET", "/v1/jobs").json["jobs"]}
    assert jobs["retention"]["retry"] is None
    audit, shown = jobs["audit"], jobs["audit"]["retry"]
    assert (audit["last"]["id"], audit["last"]["attempt"], audit["last"]["retry_of"]) == (
        first,
        1,
        None,
    )
    assert (shown["id"], shown["state"], shown["attempt"]) == (retry, "waiting", 2)
    assert (shown["retry_of"], shown["not_before"] > shown["requested_at"]) == (first, True)
    ended = hub.operate("POST", f"/v1/jobs/audit/runs/{retry}/cancel", {}).json
    assert ended["state"] == "cancelled"
    jobs = {job["name"]: job for job in hub.operate("GET", "/v1/jobs").json["jobs"]}
    assert jobs["audit"]["retry"] is None


@pytest.mark.timeout(300)
def test_the_api_shows_the_result_of_a_run_by_the_command(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("orders")
    params = json.dumps(params_of(zone))
    words = ("--params", params, "--param", "sample_max=5", "--param", "engine=spark")
    status, said = command(hub, "backtest", *words)
    assert status == 0, said
    assert "Looked. (" in said
    assert "backtest: starting Spark" in said
    [run] = hub.operate("GET", RUNS).json["items"]
    assert (run["state"], run["verdict"], run["requested_by"]) == ("completed", "ok", "command")
    assert run["params"]["sample_max"] == 5
    path = f"{RUNS}/{run['id']}"
    shown = hub.operate("GET", path).json
    assert shown["details"] == {"rows": [1, 2]}
    files = {file["name"]: file for file in shown["files"]}
    assert set(files) == {"table/part.csv", "report.html"}
    for name, file in files.items():
        answer = hub.operate("GET", f"{path}/files/{name}")
        assert hashlib.sha256(answer.body).hexdigest() == file["sha256"]
        assert int(answer.headers["content-length"]) == file["bytes"]
        assert "sandbox" in answer.headers["content-security-policy"]
    report = hub.operate("GET", f"{path}/files/report.html")
    assert report.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in report.headers["content-security-policy"]
    table = hub.operate("GET", f"{path}/files/table/part.csv")
    assert table.headers["content-disposition"] == 'attachment; filename="part.csv"'
    for name in ("result.json", "../spec.json", "%2e%2e/spec.json", "table"):
        hub.operate("GET", f"{path}/files/{name}").refused(404, "not_found")
    assert b"SparkContext" in hub.operate("GET", f"{path}/log").body
    said = hub.manage("sparkjob", "history", "backtest")
    assert said.splitlines()[0].endswith("by command  Looked.")


def test_invalid_commands_report_their_error_and_one_lists_the_jobs(
    hub: LiveHub,
) -> None:
    given = [*INVALID, (["--list"], "")]
    done = commands(hub, [["sparkjob", *words] for words, _ in given])
    for (words, says), (status, said) in zip(given, done, strict=True):
        assert (status, says in said) == (0 if words == ["--list"] else 1, True), (words, said)
    _, listed = done[-1]
    assert "retention\n  Plans what" in listed
    assert "every day at 03:30 UTC" in listed


def test_streams_are_a_list_or_a_single_name(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("null")
    for streams in (["null"], "null"):
        params = {"zone": zone.name, "streams": streams}
        run = hub.operate("POST", "/v1/jobs/audit/runs", {"params": params}).json
        assert run["params"] == {"zone": zone.name, "streams": ["null"]}


def test_documented_commands_run_as_printed(hub: LiveHub, zone: LiveZone) -> None:
    """Commands run up to the start of Spark, for which there is no Java, in the test's own zone;
    back-tests, of nothing, do without. Names that look like JSON are names.
    """
    for stream in ("logins", "orders", "payments", "null", "2026"):
        zone.create_stream(stream)
    own = ["sparkjob", "audit", "--param", f"zone={zone.name}", "--param", "streams=null,2026"]
    written = [own, *documented(zone.name)]
    assert len(written) > 8, "the documents contain commands"
    unknown = ["retention", "show", "9" * 20]
    *done, of_unknown = commands(hub, [*written, unknown], JAVA_HOME="/nowhere")
    for words, (status, said) in zip(written, done, strict=True):
        runs = words[1] not in ("--list", "history", "backtest")
        _, _, error = said.partition("CommandError: ")
        assert (status, "which contains no bin/java" in error) == (int(runs), runs), (words, said)
    assert of_unknown[0] == 1
    assert of_unknown[1].startswith("CommandError: The run does not exist")
    runs = hub.operate("GET", "/v1/jobs/audit/runs").json["items"]
    assert runs[-1]["params"] == {"zone": zone.name, "streams": ["null", "2026"]}
    assert any(run["params"].get("streams") == ["orders", "payments"] for run in runs)
