"""Streams in the console: made, listed, their policy changed, their segments and their state."""

import re

from playwright.sync_api import Locator, Page, expect

from tests.browser.desk import Desk


def placed(count: int, **more: object) -> list[dict[str, object]]:
    return [{"domain": "shop", "type": "order.placed", **more}] * count


def test_a_stream_is_made_and_its_policy_changed(desk: Desk) -> None:
    page = desk.open("streams", "Streams")
    desk.button("New stream").click()
    form = page.get_by_role("dialog")
    form.get_by_label("Name").fill("bad name!")
    form.get_by_role("button", name="Create").click()
    expect(form.get_by_label("Name")).to_have_attribute("aria-invalid", "true")
    form.get_by_label("Name").fill("shop.orders")
    form.get_by_role("switch", name=re.compile("^Keyed")).check(force=True)
    form.get_by_label("Age", exact=True).fill("7")
    form.get_by_role("button", name="Create").click()
    expect(desk.heading("shop.orders")).to_be_visible()
    expect(page.get_by_text("Retention: 7 days. No event yet.")).to_be_visible()
    page.get_by_role("tab", name="Policy").click()
    save = desk.button("Save")
    expect(save).to_be_disabled()
    page.get_by_label("Hold").fill("Audit")
    page.get_by_role("combobox", name="Strategy").click()
    page.get_by_role("option", name="compile").click()
    expect(page.get_by_text("All registrations as one program.")).to_be_visible()
    save.click()
    expect(page.get_by_text("on hold")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Hold")).to_have_value("Audit")
    found = desk.hub.call("GET", "/v1/streams/shop.orders", key=desk.zone.admin).json
    assert (found["keyed"], found["retain_age_s"], found["hold"]) == (True, 7 * 86_400, "Audit")
    assert found["matching"] == "compile"


def test_a_policy_that_somebody_else_has_changed_is_not_overwritten(desk: Desk) -> None:
    desk.zone.create_stream("orders")
    page = desk.open("streams/orders/policy", "orders")
    hold = page.get_by_label("Hold")
    hold.fill("Audit")
    change = {"retain_events": 5_000}
    answer = desk.hub.call("PUT", "/v1/streams/orders", change, key=desk.zone.admin)
    assert answer.status == 200
    desk.button("Save").click()
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("Changed in the meantime")
    expect(alert).to_contain_text("stream.changed")
    expect(alert).to_contain_text("412 changed")
    expect(hold).to_have_value("Audit")
    desk.button("Load the current version").click()
    expect(page.get_by_label("Count", exact=True)).to_have_value("5 000")
    expect(hold).to_have_value("")
    hold.fill("Audit")
    desk.button("Save").click()
    expect(page.get_by_text("on hold")).to_be_visible()


def test_the_list_shows_policies_and_sizes(desk: Desk) -> None:
    desk.zone.create_stream("orders", segment_events_max=4)
    desk.zone.emit("orders", placed(10))
    body = {"durability": "async", "on_lag": "drop"}
    assert desk.hub.call("PUT", "/v1/streams/clicks", body, key=desk.zone.admin).status == 201
    page = desk.open("streams", "Streams")
    orders = page.get_by_role("row").filter(has_text="orders")
    expect(orders.get_by_role("cell").nth(4)).to_have_text("10")
    expect(orders.get_by_role("cell").nth(5)).to_have_text("3")
    expect(orders.get_by_role("cell").nth(6)).to_have_text(re.compile("B$"))
    clicks = page.get_by_role("row").filter(has_text="clicks")
    expect(clicks).to_contain_text("async")
    expect(clicks).to_contain_text("drops")
    orders.get_by_role("link", name="orders").click()
    expect(desk.heading("orders")).to_be_visible()


def test_segments_are_drawn_listed_and_downloaded(desk: Desk) -> None:
    desk.zone.create_stream("orders", segment_events_max=4)
    desk.zone.emit("orders", placed(10))
    page = desk.open("streams/orders/segments", "orders")
    bars = page.get_by_role("group", name="Segments by size").get_by_role("button")
    expect(bars).to_have_count(3)
    expect(bars.last).to_have_accessible_name(re.compile("^Segment 9 to 10, open"))
    bars.first.click()
    chosen = segment_rows(page).first
    expect(chosen.get_by_role("cell").nth(2)).to_have_text("1")
    segments = desk.hub.call("GET", "/v1/streams/orders/segments", key=desk.zone.admin).json
    with page.expect_download() as started:
        desk.button("Download the segment from 1 to 4").click()
    path = f"/v1/streams/orders/segments/{segments['items'][0]['uuid']}/raw"
    raw = desk.hub.call("GET", path, key=desk.zone.admin).body
    assert started.value.suggested_filename == "orders-1-4.pb"
    assert started.value.path().read_bytes() == raw
    assert raw


def segment_rows(page: Page) -> Locator:
    return page.get_by_role("table", name="Segments").locator("tbody").get_by_role("row")


def test_the_state_of_a_key_and_how_it_came_to_be(desk: Desk) -> None:
    body = {"keyed": True}
    assert desk.hub.call("PUT", "/v1/streams/stock", body, key=desk.zone.admin).status == 201
    page = desk.open("streams/stock/state", "stock")
    expect(page.get_by_text("No keys")).to_be_visible()
    for key, left in (("item/1", 3), ("item/2", 8), ("item/1", 2)):
        desk.zone.emit("stock", placed(1, key=key, attributes={"left": left}))
    page.reload()
    expect(page.get_by_role("heading", name="As of sequence 3")).to_be_visible()
    row = page.get_by_role("row").filter(has_text="item/1")
    expect(row).to_contain_text("left=2")
    row.get_by_role("button").click()
    detail = page.get_by_role("dialog", name="item/1")
    history = detail.get_by_role("list", name="Events of item/1").get_by_role("listitem")
    expect(history).to_have_count(2)
    expect(history.first).to_contain_text("left=2")
    expect(history.last).to_contain_text("left=3")
    expect(detail.get_by_text("All retained events were searched.")).to_be_visible()
    history.last.get_by_role("button").click()
    expect(page.get_by_role("dialog", name="stock 1")).to_be_visible()


def test_a_deletion_is_scheduled_by_typing_the_name_and_undone(desk: Desk) -> None:
    desk.zone.create_stream("orders")
    page = desk.open("streams/orders/events", "orders")
    desk.button("Delete").click()
    question = page.get_by_role("dialog", name="Delete the stream orders")
    schedule = question.get_by_role("button", name="Schedule the deletion")
    name = question.get_by_label("Name of the stream")
    name.fill("order")
    expect(schedule).to_be_disabled()
    name.fill("orders")
    question.get_by_label("Deletion").select_option("In 1 day")
    schedule.click()
    banner = page.get_by_role("alert").filter(has_text="Deletion of the stream scheduled")
    expect(banner).to_be_visible()
    expect(desk.button("Delete")).to_have_count(0)
    event = {"domain": "shop", "type": "order.placed"}
    desk.zone.emit("orders", event).refused(409, "stream_deleting")
    banner.get_by_role("button", name="Undo").click()
    expect(banner).to_have_count(0)
    expect(desk.button("Delete")).to_be_visible()
    assert desk.zone.emit("orders", event).status == 200
