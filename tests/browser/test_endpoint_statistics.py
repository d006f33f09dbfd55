"""What the console shows of the attempts at an endpoint, examples that it sends, and the list of
endpoints.
"""

import re

from playwright.sync_api import Page, expect

from tests.acceptance.delivery.test_endpoint_statistics import counted
from tests.browser.desk import Desk
from tests.browser.test_look import violations
from tests.certificates import Authority
from tests.sink import Sink

EVENT = {"domain": "shop", "type": "order.placed"}
SCHEMA = {"properties": {"total": {"type": "integer", "minimum": 5}}, "required": ["total"]}


def figure(page: Page, name: str) -> str:
    return page.get_by_role("region", name=name, exact=True).inner_text()


def test_attempts_and_latency_are_plotted_and_listed(desk: Desk, sink: Sink) -> None:
    zone = desk.zone
    zone.create_stream("orders")
    answers = iter([(503, {})])
    sink.answer = lambda _called: next(answers, (204, {}))
    endpoint = zone.endpoint(sink.url(f"/{zone.name}"), retry_schedule=[1])["id"]
    page = desk.open(f"endpoints/{endpoint}/statistics", f"Endpoint {endpoint}")
    expect(page.get_by_text("No attempts in the last hour")).to_be_visible()
    assert violations(page) == []
    zone.register({"streams": ["orders"], "endpoint": endpoint})
    zone.emit("orders", [EVENT] * 3)
    counted(zone, endpoint, 4)
    plot = page.get_by_role("img", name="Attempts by minute: 4, of which 1 failed")
    expect(plot).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^Latency of events: p50 .* s"))).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^Duration of attempts: p50"))).to_be_visible()
    assert "75%" in figure(page, "Delivered").replace("\N{NO-BREAK SPACE}", "")
    assert "1 answered with 5xx" in figure(page, "Delivered")
    page.get_by_role("button", name="Show the numbers").press("Enter")
    table = page.get_by_role("table", name="Statistics")
    expect(table).to_contain_text("1 answered with 5xx")
    assert violations(page) == []
    page.get_by_role("radio", name="Last hour").press("ArrowRight")
    expect(page.get_by_role("img", name="Attempts by hour: 4, of which 1 failed")).to_be_visible()
    assert page.url.endswith("?step=hour")
    page.reload()
    expect(page.get_by_role("radio", name="Last 7 days")).to_be_checked()


def test_an_example_is_sent_and_its_attempt_shown(desk: Desk, sink: Sink) -> None:
    zone, path = desk.zone, f"/{desk.zone.name}"
    endpoint = zone.endpoint(sink.url(path))["id"]
    declared = zone.hub.call(
        "PUT", "/v1/types/shop/order.placed", {"schema": SCHEMA}, key=zone.admin
    )
    assert declared.status == 201, declared
    page = desk.open(f"endpoints/{endpoint}", f"Endpoint {endpoint}")
    desk.button("Send example").click()
    side = page.get_by_role("dialog", name=f"Send an example to endpoint {endpoint}")
    send = side.get_by_role("button", name="Send", exact=True)
    expect(send).to_be_disabled()
    side.get_by_role("combobox", name="Declared type").click()
    page.get_by_role("option", name="shop order.placed").click()
    expect(side.get_by_label("Domain")).to_have_value("shop")
    attributes = side.get_by_label("Attributes")
    for text, complaint in (("[1]", "Not a JSON object."), ('{"total": 1}', "total")):
        attributes.fill(text)
        send.click()
        expect(side.get_by_text(complaint).last).to_be_visible()
    assert violations(page) == []
    attributes.fill("")
    send.click()
    [called] = sink.wait(1, path)
    assert called.json["event"]["attributes"] == {"total": 5}
    expect(side.get_by_text("The example was sent.")).to_be_visible()
    expect(side.get_by_text("Attempt 1")).to_be_visible()
    assert violations(page) == []
    side.get_by_role("button", name="Send another").click()
    expect(side.get_by_label("Type", exact=True)).to_have_value("")


def test_the_list_shows_circuits_and_certificates_that_end(desk: Desk) -> None:
    zone = desk.zone
    certificate, key = Authority("the tests").issue("hub.example")
    pair = {"certificate": certificate, "private_key": key}
    ending = zone.endpoint("https://example.org/hook", tls=pair)["id"]
    away = zone.endpoint("https://example.org/away")["id"]
    zone.hub.sql(
        "INSERT INTO circuits (endpoint_id, state, failures, failing_since, failed_at, opened_at,"
        " pause_s, retry_at, outcome, segment_id, sequence) VALUES (%s, 'open', 9, now(), now(),"
        " now(), 300, now() + interval '300 s', 'timeout', 1, 1)",
        away,
    )
    page = desk.open("endpoints", "Endpoints")
    table = page.get_by_role("table", name="Endpoints")
    row = table.get_by_role("row").filter(has=page.get_by_role("button", name=f"Endpoint {ending}"))
    expect(row).to_contain_text("expires today")
    expect(row).to_contain_text("closed")
    row = table.get_by_role("row").filter(has=page.get_by_role("button", name=f"Endpoint {away}"))
    expect(row.get_by_text("open", exact=True)).to_be_visible()
    expect(row.get_by_label("no client certificate")).to_be_visible()


def test_what_does_not_exist_is_not_found(desk: Desk) -> None:
    for path, heading, kind in (
        ("endpoints/999999999", "Endpoint 999999999", "endpoint"),
        ("endpoints/999999999/statistics", "Endpoint 999999999", "endpoint"),
        ("replays/999999999", "Replay 999999999", "replay"),
        ("streams/nowhere", "nowhere", "stream"),
    ):
        page = desk.open(path, heading)
        expect(
            page.get_by_text(f"There is no such {kind} in the zone {desk.zone.name}")
        ).to_be_visible()
        expect(page.get_by_text("Not found", exact=True)).to_be_visible()
        expect(page.get_by_text("…", exact=True)).to_have_count(0)
        assert violations(page) == []
