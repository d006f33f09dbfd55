"""The page of an endpoint in the console: secrets, headers, authentication,
certificates, circuit and retries.
"""

from playwright.sync_api import Page, expect

from tests.browser.desk import Desk
from tests.browser.test_look import violations
from tests.certificates import Authority
from tests.sink import Sink, thanks

OWN_SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"


def opened(desk: Desk, tab: str = "overview", **fields: object) -> Page:
    """Return the page of a new endpoint."""
    body = {"url": "https://example.org/hook", **fields}
    made = desk.zone.hub.call("POST", "/v1/endpoints", body, key=desk.zone.admin)
    assert made.status == 201, made
    number = made.json["id"]
    return desk.open(f"endpoints/{number}/{tab}", f"Endpoint {number}")


def test_a_secret_is_rotated_shown_once_and_the_previous_one_revoked(
    desk: Desk, sink: Sink
) -> None:
    desk.zone.create_stream("orders")
    [made] = desk.zone.register({"streams": ["orders"], "callback": sink.url("/rotated")})
    number, first = made["endpoint"], made["secret"]
    page = desk.open(f"endpoints/{number}/secrets", f"Endpoint {number}")
    secrets = page.get_by_role("region", name="Secrets")
    expect(secrets.get_by_text("current", exact=True)).to_have_count(1)
    expect(secrets.get_by_role("button", name="Revoke")).to_have_count(0)
    secrets.get_by_role("button", name="Rotate the secret").click()
    form = page.get_by_role("dialog", name="Rotate the secret")
    form.get_by_label("Own secret").fill("whsec_short")
    form.get_by_role("button", name="Rotate", exact=True).click()
    expect(form.get_by_label("Own secret")).to_have_attribute("aria-invalid", "true")
    form.get_by_label("Own secret").fill(OWN_SECRET)
    form.get_by_role("combobox", name="Overlap").click()
    page.get_by_role("option", name="7 days").click()
    form.get_by_role("button", name="Rotate", exact=True).click()
    once = page.get_by_role("dialog", name="The endpoint's secret")
    expect(once.get_by_label("Secret")).to_have_text(OWN_SECRET)
    once.get_by_role("button", name="Done").click()
    expect(page.get_by_text(OWN_SECRET)).to_have_count(0)
    expect(secrets.get_by_text("signs until")).to_be_visible()
    desk.zone.emit("orders", {"domain": "shop", "type": "order.placed"})
    [called] = sink.wait(1, "/rotated")
    assert called.verified(first) and called.verified(OWN_SECRET)
    secrets.get_by_role("button", name="Revoke secret").click()
    question = page.get_by_role("dialog", name="Revoke secret")
    question.get_by_role("button", name="Revoke").click()
    expect(secrets.get_by_text("signs until")).to_have_count(0)
    listed = desk.hub.operate("GET", f"/v1/endpoints/{number}/secrets?zone={desk.zone.name}").json
    assert [each["expires_at"] for each in listed["items"]] == [None]


def test_a_public_key_is_shown_once_callbacks_are_signed_with_it(desk: Desk) -> None:
    page = opened(desk, "secrets")
    card = page.get_by_role("region", name="Signature")
    expect(card).to_contain_text("none: generated when v1a is first used")
    card.get_by_role("button", name="Edit: Signature").click()
    card.get_by_role("combobox", name="Signature").click()
    page.get_by_role("option", name="both").click()
    card.get_by_role("button", name="Save").click()
    key = card.get_by_label("Public key", exact=True)
    expect(key).to_contain_text("whpk_")
    before = key.inner_text()
    desk.button("Rotate the key pair").click()
    form = page.get_by_role("dialog", name="Rotate the key pair")
    expect(form.get_by_label("Own secret")).to_have_count(0)
    form.get_by_role("button", name="Rotate", exact=True).click()
    expect(form).to_be_hidden()
    expect(key).not_to_have_text(before)


def test_headers_are_set_kept_and_removed_without_showing_their_values(
    desk: Desk, sink: Sink
) -> None:
    desk.zone.create_stream("orders")
    [made] = desk.zone.register({"streams": ["orders"], "callback": sink.url("/headers")})
    number = made["endpoint"]
    page = desk.open(f"endpoints/{number}/authentication", f"Endpoint {number}")
    card = page.get_by_role("region", name="Headers")
    edit = card.get_by_role("button", name="Edit: Headers")
    edit.click()
    card.get_by_label("Name of header 1").fill("content-type")
    card.get_by_label("Value of header 1").fill("sesame")
    card.get_by_role("button", name="Save").click()
    expect(card.get_by_role("alert")).to_be_visible()  # the hub sets it
    card.get_by_label("Name of header 1").fill("x-api-key")
    card.get_by_role("button", name="Add a header").click()
    card.get_by_label("Name of header 2").fill("x-environment")
    card.get_by_label("Value of header 2").fill("test")
    card.get_by_role("button", name="Save").click()
    expect(card.get_by_text("set", exact=True)).to_have_count(2)
    edit.click()
    expect(card.get_by_label("Value of header 1")).to_have_value("")
    expect(card.get_by_role("button", name="Save")).to_be_disabled()
    card.get_by_role("button", name="Remove header 2").click()
    card.get_by_role("button", name="Save").click()
    expect(card.get_by_text("set", exact=True)).to_have_count(1)
    assert "sesame" not in page.content()
    desk.zone.emit("orders", {"domain": "shop", "type": "order.placed"})
    [called] = sink.wait(1, "/headers")
    assert called.headers["x-api-key"] == "sesame"
    assert "x-environment" not in called.headers


def test_authentication_is_set_replaced_and_removed(desk: Desk, sink: Sink) -> None:
    desk.zone.create_stream("orders")
    [made] = desk.zone.register({"streams": ["orders"], "callback": sink.url("/bearer")})
    number = made["endpoint"]
    page = desk.open(f"endpoints/{number}/authentication", f"Endpoint {number}")
    card = page.get_by_role("region", name="Authentication")
    card.get_by_role("button", name="Set: Authentication").click()
    save = card.get_by_role("button", name="Save")
    card.get_by_role("combobox", name="Kind").click()
    page.get_by_role("option", name="Bearer token").click()
    expect(save).to_be_disabled()
    card.get_by_label("Token", exact=True).fill("sesame token")
    save.click()
    expect(card.get_by_label("Token", exact=True)).to_have_attribute("aria-invalid", "true")
    card.get_by_label("Token", exact=True).fill("sesame-token")
    save.click()
    expect(card.get_by_text("set", exact=True)).to_be_visible()
    desk.zone.emit("orders", {"domain": "shop", "type": "order.placed"})
    assert sink.wait(1, "/bearer")[0].headers["authorization"] == "Bearer sesame-token"
    card.get_by_role("button", name="Replace: Authentication").click()
    card.get_by_role("combobox", name="Kind").click()
    page.get_by_role("option", name="OAuth 2.0 client credentials").click()
    card.get_by_label("Token URL").fill("https://10.0.0.1/token")
    card.get_by_label("Client id", exact=True).fill("hub")
    card.get_by_label("Client secret", exact=True).fill("sesame-client")
    card.get_by_label("Scopes").fill("events write")
    save.click()
    expect(card.get_by_label("Token URL")).to_have_attribute("aria-invalid", "true")
    card.get_by_label("Token URL").fill("https://id.example/token")
    assert violations(page) == []
    save.click()
    expect(card).to_contain_text("events write")
    card.get_by_role("button", name="Remove the authentication").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove", exact=True).click()
    expect(card).to_contain_text("None are set.")


def test_a_client_certificate_is_set_with_a_warning_about_its_end(desk: Desk) -> None:
    certificate, key = Authority("the tests").issue("hub.example")
    page = opened(desk, "authentication")
    card = page.get_by_role("region", name="Client certificate")
    card.get_by_role("button", name="Set: Client certificate").click()
    card.get_by_label("Client certificate", exact=True).fill(certificate)
    card.get_by_role("button", name="Save").click()
    expect(card.get_by_label("Private key")).to_have_attribute("aria-invalid", "true")
    card.get_by_label("Private key").fill(key)
    card.get_by_role("button", name="Save").click()
    expect(card.get_by_role("alert")).to_contain_text("expires today")
    expect(card).to_contain_text("hub.example")
    assert key.splitlines()[1] not in page.content()


def test_a_url_on_another_server_does_not_take_credentials_along(desk: Desk) -> None:
    page = opened(desk, headers={"x-api-key": "sesame"})
    card = page.get_by_role("region", name="Settings")
    card.get_by_role("button", name="Edit: Settings").click()
    card.get_by_label("URL").fill("https://elsewhere.example/hook")
    expect(card.get_by_role("button", name="Save")).to_be_disabled()
    card.get_by_label("Remove headers, authentication and certificates").check()
    card.get_by_role("button", name="Save").click()
    expect(card).to_contain_text("elsewhere.example")
    page.get_by_role("tab", name="Headers and authentication").click()
    expect(page.get_by_role("region", name="Headers")).to_contain_text("None are set.")


def test_an_open_circuit_is_shown_with_its_next_probe(desk: Desk, sink: Sink) -> None:
    sink.answer = lambda _called: (500, {})
    desk.zone.create_stream("orders")
    [made] = desk.zone.register({"streams": ["orders"], "callback": sink.url("/failing")})
    number = made["endpoint"]
    page = desk.open(f"endpoints/{number}", f"Endpoint {number}")
    card = page.get_by_role("region", name="Circuit")
    states = card.get_by_role("list", name="States of the circuit")
    expect(states.locator("[aria-current=true]")).to_have_text("Closed")
    desk.zone.emit("orders", [{"domain": "shop", "type": "order.placed"}] * 10)
    expect(states.locator("[aria-current=true]")).not_to_have_text("Closed")
    expect(card.get_by_text("Open since")).to_be_visible()
    expect(card.get_by_text("Failures in a row")).to_be_visible()
    sink.answer = thanks
    desk.button("Disable").click()
    desk.button("Enable").click()  # a changed endpoint is called at once
    expect(states.locator("[aria-current=true]")).to_have_text("Closed")


def test_a_retry_schedule_and_limits_are_set_and_reset(desk: Desk) -> None:
    page = opened(desk, "retries")
    card = page.get_by_role("region", name="Retries and limits")
    expect(card).to_contain_text("10 attempts within about 3 d 3 h")
    edit = card.get_by_role("button", name="Edit: Retries and limits")
    edit.click()
    card.get_by_text("Its own").click()
    for _ in range(7):
        card.get_by_role("button", name="Remove pause 3").click()
    card.get_by_label("Pause before retry 2").fill("100000")
    card.get_by_label("Rate", exact=True).fill("2.5")
    card.get_by_label("Concurrency").fill("4")
    card.get_by_role("button", name="Save").click()
    expect(card.get_by_role("alert")).to_be_visible()  # longer than a day
    card.get_by_label("Pause before retry 2").fill("3600")
    expect(card).to_contain_text("3 attempts within about 1 h")
    assert violations(page) == []
    card.get_by_role("button", name="Save").click()
    expect(card).to_contain_text("5 s, 1 h")
    expect(card).to_contain_text("2.5 requests per second")
    edit.click()
    card.get_by_text("Default", exact=True).click()
    card.get_by_label("Rate", exact=True).fill("")
    card.get_by_role("button", name="Save").click()
    expect(card).to_contain_text("10 attempts within about 3 d 3 h")
    expect(card).to_contain_text("unlimited")


def test_a_sink_is_created_by_its_form_and_changed(desk: Desk) -> None:
    page = desk.open("endpoints", "Endpoints")
    desk.button("New endpoint").click()
    form = page.get_by_role("dialog")
    form.get_by_role("combobox", name="Kind").click()
    page.get_by_role("option", name="PostgreSQL: rows of a table").click()
    form.get_by_role("combobox", name="Client").click()
    page.get_by_role("option", name="tester").click()
    url, settings = form.get_by_label("URL"), form.get_by_label("Settings")
    create = form.get_by_role("button", name="Create", exact=True)
    url.fill("https://db.example/shop")
    form.get_by_label("User name").fill("eventhub")
    form.get_by_role("textbox", name="Password").fill("a-hidden-word")
    settings.fill('{"table": "orders"')
    expect(form).to_contain_text("This is not a JSON object.")
    expect(create).to_be_disabled()
    settings.fill('{"table": "orders", "columns": {"id": "/id"}}')
    create.click()
    expect(url).to_have_attribute("aria-invalid", "true")
    url.fill("postgresql://db.example/shop")
    create.click()
    row = page.get_by_role("row").filter(has_text="postgresql://db.example/shop")
    row.get_by_role("button").click()
    about = page.get_by_role("region", name="Settings")
    expect(about).to_contain_text('"table":"orders"')
    expect(page.get_by_role("main")).not_to_contain_text("a-hidden-word")
    about.get_by_role("button", name="Edit: Settings").click()
    about.get_by_label("Settings").fill('{"table": "sales", "columns": {"id": "/id"}}')
    about.get_by_role("button", name="Save").click()
    expect(about).to_contain_text('"table":"sales"')
    desk.open("endpoints", "Endpoints")
    desk.button("New endpoint").click()
    form.get_by_role("combobox", name="Kind").click()
    page.get_by_role("option", name="Kafka: records of a topic").click()
    form.get_by_role("combobox", name="Client").click()
    page.get_by_role("option", name="tester").click()
    url.fill("kafka://kafka.example:9092")  # it may need no user
    create.click()
    expect(page.get_by_role("row").filter(has_text="kafka://kafka.example:9092")).to_be_visible()
