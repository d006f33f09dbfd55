"""The pages Members and Traces."""

import pytest
from playwright.sync_api import expect

from tests.browser.desk import Desk
from tests.browser.test_live import rows


def test_members_and_connected_clients_are_listed(desk: Desk) -> None:
    desk.open("members", "Members")
    processes = desk.page.get_by_role("table", name="Processes of the hub")
    for web in desk.hub.web:
        expect(processes.get_by_role("row").filter(has_text=str(web.pid))).to_contain_text("web")
    switch = desk.page.get_by_role("switch", name="Connections are events")
    expect(switch).not_to_be_checked()
    switch.click()
    expect(switch).to_be_checked()
    shown = desk.hub.call("GET", "/v1/monitoring", key=desk.zone.admin).json
    assert shown == {"presence": True, "traces": False}


@pytest.mark.req("OIF-31")
def test_traces_are_switched_on_and_followed_with_a_filter(desk: Desk) -> None:
    desk.open("traces", "Traces")
    expect(desk.page.get_by_text("Calls are not traced")).to_be_visible()
    desk.page.get_by_role("switch", name="Calls are traced").click()
    expect(desk.page.get_by_text("Live", exact=True)).to_be_visible()
    desk.open("traces?language=predicate&filter=(= status 404)", "Traces")
    expect(desk.page.get_by_text("Live", exact=True)).to_be_visible()
    for path in ("/v1/boot", "/v1/registrations/999", "/v1/registrations"):
        desk.hub.call("GET", path, key=desk.zone.admin)
    expect(rows(desk)).to_have_count(1)
    rows(desk).first.click()
    drawer = desk.page.get_by_role("dialog")
    attributes = drawer.get_by_label("the event", exact=True)
    expect(attributes).to_contain_text('"route": "/v1/registrations/{registration}"')
    desk.page.keyboard.press("Escape")
    desk.hub.call("PATCH", "/v1/monitoring", {"traces": False}, key=desk.zone.admin)
