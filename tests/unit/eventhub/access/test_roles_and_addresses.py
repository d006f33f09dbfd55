"""Roles, and the addresses of keys, as tables."""

from typing import Any

import pytest

from eventhub.access import roles
from eventhub.access.addresses import are_within, parse_networks, require_allowed, texts_of
from eventhub.base import caller
from eventhub.base.caller import Caller
from eventhub.base.errors import AddressNotAllowed, Forbidden
from eventhub.http.messages import Headers
from eventhub.http.origins import Origins

LISTS = (["10.1.0.0/16", "::1"], ["10.1.2.0/24"], ["10.1.2.3"], ["10.0.0.0/8", "::/0"], None)


@pytest.mark.parametrize("role", ["", "root", *roles.ROLES])
@pytest.mark.parametrize("least", roles.ROLES)
def test_each_role_includes_those_before_it(role: str, least: str) -> None:
    order = ("", "root", *roles.ROLES)
    included = role in roles.ROLES and order.index(role) >= order.index(least)
    assert roles.may(role, least) == included
    if included:
        roles.require(role, least)
        return
    with pytest.raises(Forbidden) as caught:
        roles.require(role, least)
    assert caught.value.details == {"role": least}


def test_a_request_needs_the_role_of_its_method_unless_its_route_names_one() -> None:
    reads, writes = ("GET", "HEAD", "OPTIONS"), ("POST", "PUT", "PATCH", "DELETE", "BREW")
    assert {roles.needed(method) for method in reads} == {roles.VIEWER}
    assert {roles.needed(method) for method in writes} == {roles.OPERATOR}
    assert {roles.needed(method, roles.ADMIN) for method in reads} == {roles.ADMIN}
    assert roles.needed("POST", roles.VIEWER) == roles.VIEWER


@pytest.mark.parametrize(
    ("allowed", "address", "passes"),
    [
        (None, "", True),
        (["10.1.0.0/16"], "10.1.255.255", True),
        (["10.1.0.0/16"], "10.2.0.0", False),
        (["10.1.0.0/16"], "::ffff:10.1.0.1", True),
        (["10.1.0.1"], "10.1.0.1", True),
        (["10.1.0.1"], "10.1.0.2", False),
        (["2001:db8::/32"], "2001:DB8:0:1::2", True),
        (["2001:db8::/32"], "2001:db9::", False),
        (["::/0"], "10.1.0.1", False),
        (["0.0.0.0/0"], "::1", False),
        (["0.0.0.0/0", "::/0"], "", False),
        (["0.0.0.0/0", "::/0"], "unknown", False),
    ],
)
def test_a_caller_is_compared_with_the_networks(
    allowed: list[str] | None, address: str, passes: bool
) -> None:
    networks = parse_networks(allowed)
    with caller.acting(Caller(address=address)):
        if passes:
            require_allowed(networks)
            return
        with pytest.raises(AddressNotAllowed) as caught:
            require_allowed(networks)
    assert caught.value.details == {}


@pytest.mark.parametrize("wider", range(len(LISTS)))
@pytest.mark.parametrize("narrower", range(len(LISTS)))
def test_one_list_is_within_another(narrower: int, wider: int) -> None:
    within = {(0, 3), (0, 4), (1, 0), (1, 3), (1, 4), (2, 0), (2, 1), (2, 3), (2, 4), (3, 4)}
    first, second = parse_networks(LISTS[narrower]), parse_networks(LISTS[wider])
    assert are_within(first, second) == (narrower == wider or (narrower, wider) in within)


def test_networks_are_stored_in_their_normal_form() -> None:
    given: Any = ["10.1.0.0/255.255.0.0", "192.0.2.7/32", "2001:DB8:0::/32", "::1/128", "::1"]
    shown = ["10.1.0.0/16", "192.0.2.7", "2001:db8::/32", "::1"]
    assert texts_of(parse_networks(given)) == shown
    assert texts_of(None) is None


@pytest.mark.parametrize(
    ("host", "origin", "passes"),
    [
        ("hub.example", "http://hub.example", True),
        ("hub.example", "https://hub.example", True),
        ("hub.example:443", "https://hub.example", True),
        ("hub.example:80", "https://hub.example", False),
        ("HUB.example:8000", "http://hub.example:8000", True),
        ("hub.example:8000", "http://hub.example", False),
        ("a.hub.example", "http://a.hub.example", True),
        ("evil.example", "http://evil.example", False),
        ("xhub.example", "http://xhub.example", False),
        ("[::1]:8000", "http://[::1]:8000", True),
        ("", "http://hub.example", False),
        ("hub.example", "ftp://hub.example", False),
        ("hub.example", "https://pages.example", True),
        ("hub.example", "https://pages.example.evil", False),
        ("hub.example", "https://a.sub.example", True),
        ("hub.example", "https://sub.example", False),
        ("hub.example", "null", False),
    ],
)
def test_an_origin_is_compared_with_the_host_and_the_lists(
    host: str, origin: str, passes: bool
) -> None:
    listed = ("https://pages.example", "https://*.sub.example")
    origins = Origins(listed, (".hub.example", "[::1]"))
    headers: Headers = [(b"host", host.encode()), (b"origin", origin.encode())]
    if passes:
        origins.require(headers)
        return
    with pytest.raises(Forbidden):
        origins.require(headers)
    Origins(("*",), ()).require(headers)
    Origins((), ()).require(headers[:1])
