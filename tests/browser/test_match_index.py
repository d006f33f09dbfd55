"""A stream's match index in the console: missing with its reason, requested, built, and failed."""

import pytest
from django.core.management import call_command
from playwright.sync_api import expect

from tests.browser.desk import Desk


@pytest.fixture
def beside(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Permit this process to build in the hub's place: the hub's workers do not run."""
    for name in ("DATABASE_URL", "DATABASE_DIRECT_URL", "EVENTHUB_DATA"):
        monkeypatch.setenv(name, desk.hub.env[name])


@pytest.mark.usefixtures("beside", "without_workers")
def test_an_index_is_explained_asked_for_and_shown_when_it_is_built(desk: Desk) -> None:
    zone = desk.zone
    zone.create_stream("orders")
    page = desk.open("streams/orders/match-index", "orders")
    card = page.get_by_role("region", name="Match index")
    expect(card).to_contain_text("No registration on orders has an endpoint")
    expect(desk.button("Build now")).to_have_count(0)

    change = {"matching": "index"}
    assert desk.hub.call("PUT", "/v1/streams/orders", change, key=zone.admin).status == 200
    zone.register(*[{"streams": ["orders"], "callback": "https://example.org/hook"}] * 3)
    build = desk.button("Build now")
    build.press("Enter")
    state = page.get_by_role("status", name="Build")
    expect(state).to_contain_text("A worker starts the build within seconds.")
    expect(build).to_be_disabled()
    [[stream]] = desk.hub.sql(
        "UPDATE index_builds SET requested_at = NULL, started_at = now(), heartbeat_at = now(),"
        " stage = 'read', done = 1, expected = 3 WHERE requested_at IS NOT NULL RETURNING stream_id"
    )
    expect(state).to_contain_text("Registrations read: 1 of about 3")
    expect(state.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "33")
    desk.hub.sql(
        "UPDATE index_builds SET ended_at = now(), reason = 'internal', detail = 'The disk is full'"
        " WHERE stream_id = %s",
        stream,
    )
    expect(state.get_by_role("alert")).to_contain_text("The disk is full")
    expect(build).to_be_enabled()

    call_command("index", "build", "--stream", "orders", "--zone", zone.name)
    expect(page.get_by_role("region", name="Registrations in it")).to_contain_text("3")
    expect(card).to_contain_text("current")
    expect(state).to_contain_text("The last build took")
    zone.register({"streams": ["orders"], "callback": "https://example.org/hook"})
    expect(page.get_by_role("region", name="Changed since")).to_contain_text("1")
    page.get_by_role("link", name="system").last.click()
    expect(desk.heading("system")).to_be_visible()
