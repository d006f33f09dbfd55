"""Jobs by the API and the command: asked for, listed, cancelled, done here and now, and what a run
leaves. The job is a tiny one in the place of `backtest`.
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
NOT_UNDERSTOOD: list[tuple[list[str], str]] = [
    ([], "Name a job, or `history` and a job"),
    (["history"], "Name a job, or `history` and a job"),
    (["audit", "backtest"], "Name a job, or `history` and a job"),
    (["backtest", "--param", "zone"], "there is no `=` in zone"),
    (["backtest", "--params", "[]"], "--params is an object"),
    (["backtest", "--params", "{"], "--params: Not JSON"),
    (["backtest", "--params", "[" * 50_000], "--params: The JSON is nested too deeply"),
    (["backtest", "--param", "filter={"], "params.filter: Not JSON"),
    (["backtest"], "params.zone"),
    (["audit", "--param", "zone=nowhere"], "params.zone: There is no such zone."),
    (["audit", "--param", "zone=2026"], "params.zone: There is no such zone."),
    (
        ["backtest", *MADE_UP, "--param", "shown_max=many"],
        "params.shown_max: This must be an integer.",
    ),
]
# Status and words of each, in the last line; in one process, as each takes a second to start.
ALL_OF_THEM = """
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


def wanted(zone: LiveZone, **more: Any) -> dict[str, Any]:
    return {"zone": zone.name, "stream": "orders", "filter": "(> total 100)", **more}


def ask(zone: LiveZone, **more: Any) -> Answer:
    return zone.hub.operate("POST", RUNS, {"params": wanted(zone, **more)})


def command(hub: LiveHub, *words: str) -> tuple[int, str]:
    """`manage.py sparkjob WORDS`: its status, and all that it said."""
    env = {**os.environ, **hub.env, **spark_environment()}
    argv = [sys.executable, MANAGE, "sparkjob", *words]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def commands(hub: LiveHub, several: list[list[str]], **env: str) -> list[tuple[int, str]]:
    """The same of `manage.py WORDS`, one after the other."""
    env = {**os.environ, **hub.env, **spark_environment(), **env}
    argv = [sys.executable, "-c", ALL_OF_THEM]
    wanted = json.dumps(several)
    done = subprocess.run(argv, env=env, cwd=ROOT, input=wanted, capture_output=True, text=True,
                          check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [(status, said) for status, said in json.loads(done.stdout.splitlines()[-1])]


def documented(zone: str) -> Iterator[list[str]]:
    """The words of each command in the pages about jobs, with another zone."""
    for name in ("jobs", "audit", "backtest", "retention"):
        text = (ROOT / "docs" / f"{name}.md").read_text().replace("\\\n", " ")
        for line in COMMAND.findall(text):
            words = shlex.split(line, comments=True)
            yield [re.sub(r"\b(acme|default)\b", zone, word) for word in words]


def test_jobs_are_listed_with_their_timetable_and_with_what_runs_them(hub: LiveHub) -> None:
    found = hub.operate("GET", "/v1/jobs").json
    jobs = {job["name"]: job for job in found["jobs"]}
    assert set(jobs) == {"audit", "backtest", "match_index", "retention"}
    assert jobs["audit"]["timetable"] == "every day at 02:30 UTC"
    assert jobs["audit"]["next_at"].endswith("T02:30:00.000000Z")
    assert (jobs["backtest"]["timetable"], jobs["backtest"]["next_at"]) == (None, None)
    assert all(job["running"] is job["last"] is None for job in jobs.values())
    assert found["spark"]["master"].startswith("local[")
    assert found["spark"]["problem"] == ""
    assert found["spark"]["java"].startswith(("17", "21"))


def test_a_run_is_asked_for_shown_told_of_and_cancelled(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("orders")
    answer = ask(zone, since="2026-11-21T10:00:00+02:00")
    assert answer.status == 202, answer
    run = answer.json
    assert (run["state"], run["requested_by"], run["job"]) == ("waiting", "operator", "backtest")
    assert run["params"] == wanted(
        zone, since="2026-11-21T08:00:00.000000Z", language="predicate", shown_max=100
    )
    assert answer.headers["eventhub-caused"], "what it caused is told"
    path = f"{RUNS}/{run['id']}"
    assert hub.operate("GET", path).json == {**run, "details": {}, "files": []}
    assert hub.operate("GET", f"{path}/log").body == b""
    hub.operate("GET", f"{path}/files/report.html").refused(404, "not_found")
    hub.operate("GET", f"/v1/jobs/audit/runs/{run['id']}").refused(404, "unknown_run")

    cancelled = hub.operate("POST", f"{path}/cancel", {})
    assert (cancelled.status, cancelled.json["state"]) == (202, "cancelled")
    assert cancelled.json["reason"] == "cancelled"
    assert cancelled.headers["eventhub-caused"], "that it ended is told, too"
    hub.operate("POST", f"{path}/cancel", {}).refused(409, "run_over")
    [last] = [job["last"] for job in hub.operate("GET", "/v1/jobs").json["jobs"] if job["last"]]
    assert last["id"] == run["id"]


def test_runs_come_in_pages_the_newest_first_and_so_many_may_wait(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders")
    ids = [ask(zone).json["id"] for _ in range(limits.JOB_RUNS_WAITING_MAX)]
    ask(zone).refused(409, "too_many_runs")
    found: list[int] = []
    after = ""
    while after is not None:
        page = hub.operate("GET", f"{RUNS}?limit=7{after and f'&after={after}'}").json
        found += [run["id"] for run in page["items"]]
        after = page["next"]
    assert found == sorted(ids, reverse=True)


def test_a_run_that_publishes_is_not_cancelled_and_files_that_are_gone_are_said_to_be(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders")
    run = ask(zone).json["id"]
    path = f"{RUNS}/{run}"
    hub.sql(
        "UPDATE job_runs SET state = 'running', publishing = true,"
        " lease_expires_at = now() + interval '1 hour' WHERE id = %s",
        run,
    )
    hub.operate("POST", f"{path}/cancel", {}).refused(409, "run_publishing")
    hub.sql("UPDATE job_runs SET state = 'completed', result_gone = true WHERE id = %s", run)
    hub.operate("GET", f"{path}/files/report.html").refused(410, "result_gone")
    shown = hub.operate("GET", path).json
    assert (shown["result_gone"], shown["files"], shown["details"]) == (True, [], {})


def test_a_repeat_is_shown_with_its_job_until_it_is_cancelled(hub: LiveHub) -> None:
    [[first]] = hub.sql(
        "INSERT INTO job_runs (job, requested_by, params, state, reason, ended_at)"
        " VALUES ('audit', 'timetable', '{}', 'failed', 'java_slow', now()) RETURNING id"
    )
    [[repeat]] = hub.sql(
        "INSERT INTO job_runs (job, requested_by, params, attempt, repeats, not_before)"
        " VALUES ('audit', 'timetable', '{}', 2, %s, now() + interval '5 minutes') RETURNING id",
        first,
    )
    jobs = {job["name"]: job for job in hub.operate("GET", "/v1/jobs").json["jobs"]}
    assert jobs["retention"]["repeat"] is None
    audit, shown = jobs["audit"], jobs["audit"]["repeat"]
    assert (audit["last"]["id"], audit["last"]["attempt"], audit["last"]["repeats"]) == (
        first,
        1,
        None,
    )
    assert (shown["id"], shown["state"], shown["attempt"]) == (repeat, "waiting", 2)
    assert (shown["repeats"], shown["not_before"] > shown["requested_at"]) == (first, True)
    ended = hub.operate("POST", f"/v1/jobs/audit/runs/{repeat}/cancel", {}).json
    assert ended["state"] == "cancelled"
    jobs = {job["name"]: job for job in hub.operate("GET", "/v1/jobs").json["jobs"]}
    assert jobs["audit"]["repeat"] is None


@pytest.mark.timeout(300)
def test_a_run_by_the_command_leaves_what_the_api_shows(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("orders")
    params = json.dumps(wanted(zone))
    status, said = command(hub, "backtest", "--params", params, "--param", "shown_max=5")
    assert status == 0, said
    assert "Looked. (" in said
    assert "backtest: starting Spark" in said
    [run] = hub.operate("GET", RUNS).json["items"]
    assert (run["state"], run["verdict"], run["requested_by"]) == ("completed", "ok", "command")
    assert run["params"]["shown_max"] == 5
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
    for name in ("result.json", "../order.json", "%2e%2e/order.json", "table"):
        hub.operate("GET", f"{path}/files/{name}").refused(404, "not_found")
    assert b"SparkContext" in hub.operate("GET", f"{path}/log").body
    status, said = command(hub, "history", "backtest")
    assert (status, said.splitlines()[0].endswith("by command  Looked.")) == (0, True)


def test_commands_that_are_not_understood_say_what_is_wrong_and_one_lists_the_jobs(
    hub: LiveHub,
) -> None:
    asked = [*NOT_UNDERSTOOD, (["--list"], "")]
    done = commands(hub, [["sparkjob", *words] for words, _ in asked])
    for (words, says), (status, said) in zip(asked, done, strict=True):
        assert (status, says in said) == (0 if words == ["--list"] else 1, True), (words, said)
    _, listed = done[-1]
    assert "retention\n  Plans what" in listed
    assert "every day at 03:30 UTC" in listed


def test_streams_are_named_in_a_list_or_one_as_a_text(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("null")
    for streams in (["null"], "null"):
        params = {"zone": zone.name, "streams": streams}
        run = hub.operate("POST", "/v1/jobs/audit/runs", {"params": params}).json
        assert run["params"] == {"zone": zone.name, "streams": ["null"]}


def test_commands_of_the_documentation_run_as_they_stand(hub: LiveHub, zone: LiveZone) -> None:
    """As far as Spark, which has no Java here; in the test's own zone. Names that look like JSON
    are names.
    """
    for stream in ("orders", "payments", "null", "2026"):
        zone.create_stream(stream)
    own = ["sparkjob", "audit", "--param", f"zone={zone.name}", "--param", "streams=null,2026"]
    written = [own, *documented(zone.name)]
    assert len(written) > 8, "they are found"
    unknown = ["retention", "show", "9" * 20]
    *done, of_unknown = commands(hub, [*written, unknown], JAVA_HOME="/nowhere")
    for words, (status, said) in zip(written, done, strict=True):
        runs = words[1] not in ("--list", "history")
        _, _, error = said.partition("CommandError: ")
        assert (status, "there is no bin/java" in error) == (int(runs), runs), (words, said)
    assert of_unknown[0] == 1
    assert of_unknown[1].startswith("CommandError: The job has no such run")
    runs = hub.operate("GET", "/v1/jobs/audit/runs").json["items"]
    assert runs[-1]["params"] == {"zone": zone.name, "streams": ["null", "2026"]}
    assert any(run["params"].get("streams") == ["orders", "payments"] for run in runs)
