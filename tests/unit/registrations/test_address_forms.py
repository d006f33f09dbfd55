"""The verdict about every form in which a URL can name an address."""

import pytest

from eventhub.base.errors import EventHubError
from registrations.endpoints.addresses import parse_allowed
from registrations.endpoints.callback_url import valid_url
from tests.address_forms import ADDRESS_FORMS, AddressForm

# An exception for another zone, or for another port, changes no verdict.
RULES = parse_allowed(["other=0.0.0.0/0", "127.0.0.0/8:9", "[::1]:9"]).of_zone("z")


def test_there_are_many_forms_and_each_stands_once() -> None:
    assert len({form.url for form in ADDRESS_FORMS}) == len(ADDRESS_FORMS) >= 200


@pytest.mark.parametrize("form", ADDRESS_FORMS, ids=lambda form: ascii(form.url)[:80])
def test_a_url_has_the_verdict_of_its_form(form: AddressForm) -> None:
    code, url = "", form.url.format(port=9000)
    try:
        assert valid_url(url, RULES, field="url") == url
    except EventHubError as error:
        code = error.code
    assert code == form.code, form.why
