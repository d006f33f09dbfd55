"""Signing in and out, and what a login that has ended leads to."""

from playwright.sync_api import expect

from tests.browser.desk import NO_PAGE, Desk
from tests.live import OPERATOR


def test_an_operator_signs_in_and_out(desk: Desk) -> None:
    page = desk.page
    desk.context.clear_cookies()
    page.goto(f"{desk.hub.url}/")
    expect(desk.heading("Sign in")).to_be_visible()
    expect(page.get_by_text("credentials.json")).to_be_visible()
    page.get_by_label("Username").fill(OPERATOR)
    page.get_by_label("Password", exact=True).fill("wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("The username or the password is wrong")
    page.get_by_label("Password", exact=True).fill(desk.hub.password)
    desk.button("Sign in").click()
    expect(desk.heading("Overview")).to_be_visible()
    desk.button(f"Signed in as {OPERATOR}").click()
    page.get_by_role("menuitem", name="Sign out").click()
    expect(desk.heading("Sign in")).to_be_visible()


def test_a_login_that_has_ended_leads_to_the_sign_in_page(desk: Desk) -> None:
    page = desk.open("overview", "Overview")
    desk.context.clear_cookies()
    page.keyboard.type("gr")  # unless the page itself has noticed before
    expect(desk.heading("Sign in")).to_be_visible()


def test_a_path_that_is_no_page_says_so(desk: Desk) -> None:
    desk.open("overview", "Overview")
    page = desk.turn_to("nonsense", NO_PAGE)
    page.reload()
    expect(desk.heading(NO_PAGE)).to_be_visible()
    expect(page.get_by_role("link", name="Streams", exact=True)).to_be_visible()
