"""The page of connectors: what each reads, what holds it up, and its actions."""

import re
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.desk import Desk
from tests.live_processes import MANAGE, LiveProcess


def test_a_connector_shows_what_holds_it_up_and_is_paused_and_deleted(
    desk: Desk, tmp_path: Path
) -> None:
    desk.zone.create_stream("orders")
    connect = LiveProcess("connect", (MANAGE, "connect"), desk.hub.env, tmp_path / "connect.log")
    connect.start()
    try:
        page = desk.open("connectors", "Connectors")
        expect(page.get_by_text("No connectors")).to_be_visible()
        desk.button("New connector").click()
        form = page.get_by_role("dialog", name="New connector")
        form.get_by_role("combobox", name="Client").fill("tester")
        form.get_by_role("combobox", name="Stream").click()
        page.get_by_role("option", name="orders").click()
        form.get_by_label("Name").fill("shop")
        form.get_by_role("combobox", name="Kind").click()
        page.get_by_role("option", name="Topics of Kafka").click()
        expect(form.get_by_label("Settings")).to_have_value(re.compile('"topics"'))
        form.get_by_label("URL").fill("kafka://reader:word@127.0.0.1:1")
        form.get_by_role("button", name="Create").click()
        detail = desk.drawer("Connector")
        expect(detail).to_contain_text(re.compile("retrying.*kafka.*127.0.0.1:1"), timeout=15_000)
        expect(detail.get_by_role("status")).to_contain_text("unreachable")
        detail.get_by_role("button", name="Pause").press("Enter")
        expect(detail).to_contain_text("Statepaused")
        page.keyboard.press("Escape")
        row = page.get_by_role("row").filter(has_text="shop")
        expect(row).to_contain_text("paused")
        row.get_by_role("button").press("Enter")
        desk.button("Delete").click()
        question = page.get_by_role("dialog", name="Delete the connector shop?")
        question.get_by_role("button", name="Delete").click()
        expect(page.get_by_text("No connectors")).to_be_visible()
    finally:
        connect.stop()
