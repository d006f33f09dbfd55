"""Clients and keys, channels, types and storage in the console."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.desk import Desk

SCHEMA = '{"type": "object", "properties": {"total": {"type": "number"}}}'
NARROW = """{
  "type": "object",
  "properties": {
    "total": {
      "type": "number",
      "minimum": 5
    }
  }
}"""


def test_a_client_gets_a_key_that_works_until_it_is_revoked(desk: Desk) -> None:
    desk.zone.create_stream("orders")
    page = desk.open("clients", "Clients")
    desk.button("New client").click()
    page.get_by_label("Name").fill("shop")
    page.get_by_role("combobox", name="Groups").fill("ops")
    page.keyboard.press("Enter")
    desk.button("Create").click()
    client = page.get_by_role("dialog", name="shop")
    expect(client.get_by_text("No keys")).to_be_visible()
    groups = client.get_by_role("region", name="Groups")
    groups.get_by_role("button", name="Edit groups").click()
    names = groups.get_by_role("combobox", name="Groups")
    names.fill("night shift!")
    names.press("Enter")
    groups.get_by_role("button", name="Save").click()
    expect(names).to_have_attribute("aria-invalid", "true")
    names.press("Backspace")
    names.fill("night")
    names.press("Enter")
    groups.get_by_role("button", name="Save").click()
    expect(groups).to_contain_text("nightops")
    client.get_by_role("button", name="New key").click()
    form = page.get_by_role("dialog", name="New key")
    form.get_by_label("Label").fill("tills")
    form.get_by_label("Action of grant 1").select_option("emit")
    form.get_by_role("button", name="Create").click()  # on which streams, nobody has chosen
    expect(form.get_by_text("A stream pattern is")).to_be_visible()
    form.get_by_label("Streams of grant 1").fill("orders")
    form.get_by_role("button", name="Create").click()
    once = page.get_by_role("dialog", name="The key")
    key = once.get_by_label("Secret").inner_text()
    once.get_by_role("button", name="Done").click()
    row = client.get_by_role("row").filter(has_text="tills")
    expect(row).to_contain_text("emit orders")
    expect(page.get_by_text(key)).to_have_count(0)
    event = {"domain": "shop", "type": "order.placed"}
    assert desk.zone.emit("orders", event, key=key).status == 200
    row.get_by_role("button", name="Revoke").click()
    page.get_by_role("dialog", name="Revoke the key").get_by_role("button", name="Revoke").click()
    expect(row).to_contain_text("revoked")
    expect(row.get_by_role("button", name="Revoke")).to_have_count(0)
    client.get_by_role("button", name="Delete the client").click()
    question = page.get_by_role("dialog", name="Delete the client shop?")
    question.get_by_role("button", name="Delete the client").click()
    expect(page.get_by_role("row").filter(has_text="shop")).to_have_count(0)


def test_a_keys_grants_change(desk: Desk) -> None:
    desk.zone.key("emit:orders", client="shop", label="tills")
    page = desk.open("clients?client=shop", "Clients")
    row = page.get_by_role("row").filter(has_text="tills")
    row.get_by_role("button", name="Edit").click()
    form = page.get_by_role("dialog", name="Key ")
    form.get_by_role("button", name="Add a grant").click()
    form.get_by_label("Streams of grant 2").fill("orders.*")
    form.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("listen orders.*")


def test_a_channel_gets_a_name(desk: Desk) -> None:
    page = desk.open("channels", "Channels")
    expect(page.get_by_text("No named channels")).to_be_visible()
    desk.button("New channel").click()
    form = page.get_by_role("dialog")
    form.get_by_label("Name").fill("alarms")
    form.get_by_role("combobox", name="Bit").click()
    page.get_by_role("option", name="7", exact=True).click()
    form.get_by_role("button", name="Define").click()
    row = page.get_by_role("row").filter(has_text="alarms")
    expect(row).to_contain_text("128")


def test_a_type_is_declared_and_a_version_that_breaks_is_refused_at_its_line(desk: Desk) -> None:
    page = desk.open("types", "Types")
    expect(page.get_by_text("No type is declared yet")).to_be_visible()
    desk.button("New type").click()
    form = page.get_by_role("dialog")
    form.get_by_label("Domain").fill("shop")
    form.get_by_label("Type", exact=True).fill("order.placed")
    schema = form.get_by_role("textbox", name="Schema of the attributes")
    schema.fill("{")
    form.get_by_role("button", name="Declare").click()
    expect(form.get_by_text("No JSON yet")).to_be_visible()
    schema.fill(SCHEMA)
    form.get_by_role("button", name="Declare").click()
    expect(desk.heading("order.placed")).to_be_visible()
    schema = page.get_by_role("textbox", name="Schema of the attributes")
    schema.fill(NARROW)
    desk.button("Declare version 2").click()
    expect(page.get_by_text("`minimum` is 5 now")).to_be_visible()
    expect(page.locator(".cm-fault")).to_contain_text('"total"')
    schema.fill(NARROW.replace('"minimum": 5', '"description": "In francs"'))
    expect(page.locator(".cm-fault")).to_have_count(0)
    desk.button("Declare version 2").click()
    version = page.get_by_role("combobox", name="Version")
    expect(version).to_have_value("Version 2, newest")
    version.click()
    page.get_by_role("option", name="Version 1", exact=True).click()
    expect(desk.button("Declare version 3")).to_have_count(0)
    expect(schema).not_to_contain_text("In francs")


@pytest.mark.usefixtures("quota")
def test_the_quota_is_changed_and_what_is_used_is_drawn(desk: Desk) -> None:
    desk.zone.create_stream("orders")
    desk.zone.emit("orders", {"domain": "shop", "type": "order.placed"})
    page = desk.open("storage", "Storage")
    expect(page.get_by_role("img", name="Bytes used: ")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="orders")).to_contain_text("1")
    desk.button("Change the quota").click()
    form = page.get_by_role("dialog", name="Quota")
    amount = form.get_by_role("textbox", name="Quota")
    amount.fill("0.001")
    form.get_by_role("button", name="Save").click()
    expect(amount).to_have_attribute("aria-invalid", "true")
    amount.fill("3")
    form.get_by_role("button", name="Save").click()
    expect(form).to_be_hidden()
    expect(page.get_by_role("region", name="Quota")).to_contain_text("3 GiB")


def test_the_limits_of_the_zone_and_of_a_client_are_set(desk: Desk) -> None:
    desk.zone.key("emit:*", client="shop")
    page = desk.open("limits", "Limits")
    row = page.get_by_role("row").filter(has_text="Sockets")
    expect(row).to_contain_text("no limit")
    desk.button("Change the limits").click()
    form = page.get_by_role("dialog", name="Limits of")
    form.get_by_role("textbox", name="Sockets").fill("40")
    form.get_by_role("textbox", name="Stored bytes").fill("0")
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_role("textbox", name="Stored bytes")).to_have_attribute(
        "aria-invalid", "true"
    )
    form.get_by_role("textbox", name="Stored bytes").fill("2")
    form.get_by_role("button", name="Save").click()
    expect(form).to_be_hidden()
    expect(row).to_contain_text("40")
    expect(page.get_by_role("row").filter(has_text="Stored bytes")).to_contain_text("2 GiB")
    page = desk.open("clients?client=shop", "Clients")
    client = page.get_by_role("dialog", name="shop")
    expect(client.get_by_role("row").filter(has_text="Endpoints")).to_contain_text("10,000")
    client.get_by_role("button", name="Change the limits").click()
    form = page.get_by_role("dialog", name="Limits of shop")
    expect(form.get_by_role("textbox", name="Stored bytes")).to_have_count(0)
    form.get_by_role("textbox", name="Endpoints").fill("7")
    form.get_by_role("button", name="Save").click()
    expect(form).to_be_hidden()
    expect(client.get_by_role("row").filter(has_text="Endpoints")).to_contain_text("7")


@pytest.fixture
def quota(desk: Desk) -> Iterator[None]:
    """Restore the quota afterwards: it is the whole hub's."""
    before = desk.hub.operate("GET", f"/v1/storage?zone={desk.zone.name}").json["quota_bytes"]
    yield
    assert desk.hub.operate("PUT", "/v1/storage", {"quota_bytes": before}).status == 200
