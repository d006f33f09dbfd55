"""Registrations that are suspended, grouped, limited to some fields, and registered twice; and the
interest in a stream.
"""

from playwright.sync_api import expect

from tests.browser.desk import Desk

JOE = {"streams": ["orders"], "language": "predicate", "filter": "(and (= user 'Joe) (> total 9))"}


def test_a_registration_is_suspended_in_the_list_and_resumed_in_its_detail(desk: Desk) -> None:
    desk.zone.create_stream("orders")
    first, second = desk.zone.register(JOE, {**JOE, "filter": "(and (> total 9) (= user 'Joe))"})
    page = desk.open("registrations", "Registrations")
    row = page.get_by_role("row").filter(
        has=desk.page.get_by_role("button", name=f"Registration {second['id']}")
    )
    expect(row).to_contain_text("active")
    desk.button(f"Suspend registration {second['id']}").click()
    expect(row).to_contain_text("suspended")
    page.get_by_role("combobox", name="In the state").click()
    page.get_by_role("option", name="active").click()
    expect(row).to_have_count(0)
    page.get_by_role("combobox", name="In the state").click()
    page.get_by_role("option", name="suspended").click()
    row.get_by_role("button").first.click()
    detail = page.get_by_role("dialog", name=f"Registration {second['id']}")
    expect(detail).to_contain_text("Another registration has an equal filter")
    expect(detail.get_by_text("Signature: total, user")).to_be_visible()
    detail.get_by_role("button", name="Resume").click()
    expect(detail.get_by_role("button", name="Suspend")).to_be_visible()
    detail.get_by_role("link", name=f"registration {first['id']}").click()
    expect(page.get_by_role("dialog", name=f"Registration {first['id']}")).to_be_visible()
    path = f"/v1/registrations/{second['id']}?zone={desk.zone.name}"
    assert desk.hub.operate("GET", path).json["suspended"] is False


def test_a_change_that_comes_second_suspends_nothing(desk: Desk) -> None:
    desk.zone.create_stream("orders")
    [made] = desk.zone.register(JOE)
    desk.open(f"registrations?registration={made['id']}", "Registrations")
    detail = desk.drawer("Registration")
    detail.get_by_role("button", name="Suspend").wait_for()
    path = f"/v1/registrations/{made['id']}"
    assert desk.hub.call("PATCH", path, {"type": "x"}, key=desk.zone.admin).status in (200, 400)
    change = {"language": "predicate", "filter": "(= user 'Ann)"}
    assert desk.hub.call("PATCH", path, change, key=desk.zone.admin).status == 200
    detail.get_by_role("button", name="Suspend").click()
    alert = detail.get_by_role("alert").filter(has_text="Changed in the meantime")
    alert.get_by_role("button", name="Load the current version").click()
    expect(detail.get_by_label("its filter", exact=True)).to_contain_text("'Ann")
    detail.get_by_role("button", name="Suspend").click()
    expect(detail.get_by_role("button", name="Resume")).to_be_visible()


def test_a_group_is_made_suspended_and_deleted_when_it_is_empty(desk: Desk) -> None:
    desk.zone.create_stream("orders")
    page = desk.open("groups", "Groups")
    expect(page.get_by_text("No groups")).to_be_visible()
    desk.button("New group").click()
    form = page.get_by_role("dialog", name="New group")
    form.get_by_role("combobox", name="Client").fill("tester")
    form.get_by_label("Name").fill("bad name!")
    form.get_by_role("button", name="Create").click()
    expect(form.get_by_label("Name")).to_have_attribute("aria-invalid", "true")
    form.get_by_label("Name").fill("night")
    form.get_by_role("button", name="Create").click()
    group = desk.drawer("Group")
    expect(group.get_by_text("No registrations in the group")).to_be_visible()

    desk.zone.register({**JOE, "group": "night"})
    page.reload()
    group.get_by_role("button", name="Suspend").click()
    expect(group.get_by_role("button", name="Resume")).to_be_visible()
    group.get_by_role("button", name="Delete").click()
    question = page.get_by_role("dialog", name="Delete the group night?")
    question.get_by_role("button", name="Delete").click()
    expect(question.get_by_role("alert")).to_contain_text("group_in_use")
    question.get_by_role("button", name="Cancel").click()
    members = group.get_by_role("table", name="Registrations of the group")
    members.get_by_role("link").click()
    expect(desk.heading("Registrations")).to_be_visible()
    detail = desk.drawer("Registration")
    expect(detail.get_by_text("group suspended")).to_be_visible()
    detail.get_by_role("button", name="Edit").click()
    detail.get_by_role("combobox", name="Group").click()
    page.get_by_role("option", name="night").click()  # once more: none
    detail.get_by_role("button", name="Save").click()
    expect(detail.get_by_text("active", exact=True)).to_be_visible()

    page = desk.open("groups", "Groups")
    page.get_by_role("button", name="Group night").click()
    group.get_by_role("button", name="Delete").click()
    question.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No groups")).to_be_visible()


def test_a_registration_joins_a_group_and_reports_some_fields(desk: Desk) -> None:
    desk.zone.create_stream("orders")
    night = desk.hub.call("POST", "/v1/registration-groups", {"name": "night"}, key=desk.zone.admin)
    assert night.status == 201, night
    page = desk.open("registrations", "Registrations")
    desk.button("New registration").click()
    form = page.get_by_role("dialog")
    form.get_by_role("combobox", name="Client").fill("tester")
    form.get_by_role("combobox", name="Streams").click()
    page.get_by_role("option", name="orders").click()
    page.keyboard.press("Escape")
    form.get_by_role("combobox", name="Group", exact=True).click()
    page.get_by_role("option", name="night").click()
    form.get_by_text("Some fields", exact=True).click()
    form.get_by_label("Path or value of field 1").fill("@nonsense")
    form.get_by_role("button", name="Add a field").click()
    form.get_by_label("Source of field 2").select_option("number")
    form.get_by_label("Name of field 2").fill("n")
    register = form.get_by_role("button", name="Register", exact=True)
    register.click()
    expect(form.get_by_text("Not a number.")).to_be_visible()
    form.get_by_label("Path or value of field 2").fill("7")
    register.click()
    expect(form.get_by_text("An event has no field @nonsense")).to_be_visible()
    form.get_by_label("Path or value of field 1").fill("address.city")
    form.get_by_label("Name of field 1").fill("city")
    register.click()
    row = page.get_by_role("row").filter(has_text="every event")
    expect(row).to_contain_text("active")
    [made] = desk.hub.operate("GET", f"/v1/registrations?zone={desk.zone.name}").json["items"]
    assert (made["group"], made["report"]) == ("night", {"city": "address.city", "n": {"const": 7}})
    row.get_by_role("button").first.click()
    detail = desk.drawer("Registration")
    detail.get_by_role("button", name="Edit").click()
    expect(detail.get_by_label("Name of field 2")).to_have_value("n")
    detail.get_by_text("The whole event", exact=True).click()
    detail.get_by_role("button", name="Save").click()
    expect(detail).to_contain_text("Version2")
    expect(detail.get_by_label("its report")).to_have_count(0)


def test_a_stream_shows_its_interest(desk: Desk) -> None:
    desk.zone.create_stream("orders")
    page = desk.open("streams/orders/interest", "orders")
    expect(page.get_by_text("No interest: no registrations match")).to_be_visible()
    typed = {"streams": ["orders"], "type": "x"}
    desk.zone.register(JOE, {**JOE, "filter": "(= user 'Joe)"}, typed)
    alternatives = page.get_by_role("list", name="Alternatives").get_by_role("listitem")
    expect(alternatives).to_have_count(2)  # the first is covered
    answer = page.get_by_role("status", name="Answer")
    for name, said in (("Joe", "yes"), ("Ann", "maybe")):
        desk.button("Add an attribute").click()
        page.get_by_label("Name of attribute 1").fill("user")
        page.get_by_label("Value of attribute 1").fill(name)
        desk.button("Check").click()
        expect(answer).to_contain_text(said)
        page.get_by_label("Remove attribute 1").click()
        expect(answer).to_have_text("")
    page.get_by_placeholder("all clients").fill("ops")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No interest: no registrations match")).to_be_visible()
