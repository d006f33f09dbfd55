"""The console's pages of jobs: runs that are requested, cancelled, failed and interrupted, an index
that the local builder makes, and a back-test that is followed, read and narrowed.

A run's process is started here as a worker would; none runs by itself. While Spark computes, the
tests wait by `wait_for`: `expect` would describe the whole page once a second.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.desk import Desk
from tests.browser.test_look import WIDER, violations
from tests.live import LiveHub

SPARK_MS = 300_000  # a driver starts within seconds on an idle machine
ORDERS = {"domain": "shop", "type": "order.placed"}


@pytest.fixture(autouse=True)
def no_runs(hub: LiveHub, without_workers: None) -> Iterator[None]:
    yield
    hub.sql("DELETE FROM job_runs")


def runner(desk: Desk, run: int, **env: str) -> subprocess.Popen[bytes]:
    """Start the process of a waiting run. Its few events need one task at a time."""
    argv = [sys.executable, "-m", "sparkjobs.runs", str(run)]
    own = {**os.environ, **desk.hub.env, "SPARK_MASTER": "local[1]", **env}
    return subprocess.Popen(argv, env=own)


def shown(page: Page, title: str) -> int:
    """Return the number of the run on the page."""
    heading = page.get_by_role("heading", level=1, name=re.compile(rf"{title} \d+"))
    expect(heading).to_be_visible()
    return int(heading.inner_text().split()[-1])


def request_backtest(desk: Desk) -> int:
    """Request a back-test from the page of a filter, with the form."""
    page = desk.open("filters?language=predicate&stream=orders&filter=(> n 6)", "Filters")
    page.get_by_role("link", name="Back-test this filter").click()
    expect(desk.heading("Back-test")).to_be_visible()
    expect(page.get_by_role("textbox", name="Filter")).to_have_text("(> n 6)")
    page.get_by_role("radio", name="One process").check()
    desk.button("Run").click()
    run = shown(page, "Back-test")
    found = desk.hub.operate("GET", f"/v1/jobs/backtest/runs/{run}").json
    assert found["params"]["engine"] == "local"
    return run


def fill(desk: Desk) -> None:
    desk.zone.create_stream("orders")
    desk.zone.emit("orders", [{**ORDERS, "attributes": {"n": n}} for n in range(10)])


def test_a_failed_run_shows_its_reason_and_another_is_cancelled(desk: Desk) -> None:
    fill(desk)
    params = {"zone": desk.zone.name, "stream": "orders", "filter": "(> n 6)", "engine": "spark"}
    run = desk.hub.operate("POST", "/v1/jobs/backtest/runs", {"params": params}).json["id"]
    page = desk.open(f"jobs/backtest/{run}", f"Back-test {run}")
    with runner(desk, run, JAVA_HOME="/nowhere") as process:
        page.get_by_role("alert").wait_for(timeout=SPARK_MS)
        process.wait()
    expect(page.get_by_role("alert")).to_contain_text("The run failed")
    expect(page.get_by_role("alert")).to_contain_text("JAVA_HOME is /nowhere")
    expect(page.get_by_role("alert")).to_contain_text("no_java")
    assert violations(page, "best-practice") == []

    run = request_backtest(desk)
    expect(page.get_by_role("status", name="Progress")).to_contain_text("A worker starts")
    desk.button("Cancel").press("Enter")
    question = page.get_by_role("dialog", name=f"Cancel Back-test {run}?")
    question.get_by_role("button", name="Let it run").click()
    expect(question).to_be_hidden()
    desk.button("Cancel").click()
    question.get_by_role("button", name="Cancel the run").click()
    expect(page.get_by_text("The run was cancelled.")).to_be_visible()
    expect(desk.button("Cancel")).to_have_count(0)
    page.get_by_role("link", name="Jobs").first.click()
    card = page.get_by_role("region", name="Back-test")
    expect(card).to_contain_text("cancelled")
    page.get_by_role("radiogroup", name="Runs of").get_by_text("Back-test").click()
    page.get_by_role("button", name=f"Back-test {run}").click()
    assert shown(page, "Back-test") == run
    desk.open("jobs/backtest/999999", "Back-test 999999")
    expect(page.get_by_role("alert")).to_contain_text("unknown_run")


@pytest.mark.timeout(700)
def test_a_backtest_is_followed_read_and_narrowed(desk: Desk) -> None:
    fill(desk)
    page = desk.page
    run = request_backtest(desk)
    progress = page.get_by_role("status", name="Progress")
    desk.hub.sql(
        "UPDATE job_runs SET state = 'running', phase = 'searching segments', started_at = now(),"
        " lease_expires_at = now() + interval '1 hour' WHERE id = %s",
        run,
    )
    progress.filter(has_text=re.compile("searching segments", re.I)).wait_for()
    desk.hub.sql(
        "UPDATE job_runs SET state = 'waiting', phase = '', started_at = NULL,"
        " lease_expires_at = NULL WHERE id = %s",
        run,
    )
    with runner(desk, run):  # a second or two
        verdict = page.get_by_role("region", name="Verdict")
        verdict.wait_for(timeout=SPARK_MS)
    expect(verdict).to_contain_text("Matched: 3 of 10 events.")
    expect(page.get_by_role("region", name="Events matched", exact=True)).to_contain_text("3")
    expect(page.get_by_role("img", name="Matches over time: 3 in")).to_be_visible()
    matched = page.get_by_role("region", name="Matched events").get_by_role("button")
    expect(matched).to_have_count(3)
    assert violations(page, "best-practice") == []
    matched.first.click()
    event = page.get_by_role("dialog", name="orders 8")
    expect(event).to_contain_text("The draft matches it.")
    page.keyboard.press("Escape")

    report = page.get_by_role("link", name="Report", exact=True).get_attribute("href")
    answer = desk.context.request.get(f"{desk.hub.url}{report}")
    assert "sandbox" in answer.headers["content-security-policy"]
    assert "Matched: 3 of 10 events." in answer.text()
    with page.expect_download() as kept:
        page.get_by_role("link", name="matches.csv").click()
    assert kept.value.path().read_text().count("\n") == 1 + 3
    desk.button("Show the log").click()
    expect(page.get_by_label("The end of the log")).not_to_be_empty()

    page.set_viewport_size({"width": 380, "height": 844})
    assert page.evaluate(WIDER) <= 0
    desk.button("As numbers").click()
    page.get_by_role("button", name="Narrow to").first.press("Enter")
    expect(desk.heading("Back-test")).to_be_visible()
    expect(page.get_by_role("textbox", name="Filter")).to_have_text("(> n 6)")
    expect(page.get_by_label("Since", exact=True)).not_to_have_value("")
    expect(page.get_by_label("Until", exact=True)).not_to_have_value("")
