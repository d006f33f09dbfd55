"""Addresses that may be called, URLs, and sealed secrets."""

import pytest

from eventhub.errors import EventHubError
from registrations.endpoints import secrets
from registrations.endpoints.addresses import parse_allowed
from registrations.endpoints.callback_url import valid_url

RULES = parse_allowed(
    ["127.0.0.1:9000", "10.0.0.0/8", "[::1]:80", "hooks.internal", "[fd00::]/8:443", "fe80::/10"]
)
NO_RULES = parse_allowed([])


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.8.8.8", "169.254.169.254",
        "172.16.0.1", "192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1",
        "203.0.113.9", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::", "::1", "::127.0.0.1",
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::",
        "2001:0:1::", "2001:db8::1", "3fff::1", "5f00::1", "fc00::1", "fd12::1", "fe80::1",
        "fe80::1%eth0", "fec0::1", "ff02::1", "", "localhost", "1.2.3", "1.2.3.4.5",
    ],
)  # fmt: skip
def test_what_is_not_public_is_refused(address: str) -> None:
    assert not NO_RULES.allowed(address, "a.example", 443)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_what_is_public_is_allowed(address: str) -> None:
    assert NO_RULES.allowed(address, "a.example", 443)


@pytest.mark.parametrize(
    ("address", "host", "port", "allowed"),
    [
        ("127.0.0.1", "a", 9000, True),
        ("127.0.0.1", "a", 9001, False),
        ("127.0.0.2", "a", 9000, False),
        ("::ffff:127.0.0.1", "a", 9000, True),
        ("10.200.0.1", "a", 1, True),
        ("::ffff:10.200.0.1", "a", 1, True),
        ("11.0.0.1", "a", 1, True),
        ("::1", "a", 80, True),
        ("::1", "a", 81, False),
        ("fd00::7", "a", 443, True),
        ("fd00::7", "a", 80, False),
        ("fe80::1%eth0", "a", 5, True),
        ("192.168.1.1", "hooks.internal", 5, True),
        ("192.168.1.1", "HOOKS.Internal.", 5, True),
        ("192.168.1.1", "x.hooks.internal", 5, False),
        ("192.168.1.1", "hooks.internal.x", 5, False),
    ],
)
def test_exceptions_name_networks_hosts_and_ports(
    address: str, host: str, port: int, allowed: bool
) -> None:
    assert RULES.allowed(address, host, port) is allowed


@pytest.mark.parametrize(
    "entry",
    ["", "a b", "1.2.3.4:0", "1.2.3.4:99999", "http://a", "10.0.0.0/33", "[::1]x", "[::1]:", "a/8"],
)
def test_a_bad_exception_is_named(entry: str) -> None:
    with pytest.raises(ValueError, match="EVENTHUB_CALLBACK_ALLOW"):
        parse_allowed(["10.0.0.0/8", entry])


@pytest.mark.parametrize(
    "url",
    [
        "https://a.example",
        "HTTPS://A.Example:8443/x?y=%20&z=1",
        "http://8.8.8.8/",
        "http://[2606:4700::1111]:8080/",
        "http://hooks.internal/",
        "http://10.0.0.1/",
        "http://127.0.0.1:9000/",
        "http://xn--bcher-kva.example/",
        "http://service_1/",
    ],
)
def test_a_url_is_taken_as_it_is(url: str) -> None:
    assert valid_url(url, RULES, field="url") == url


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "http://[::1]:8080/", "http://localhost/"])
def test_a_url_to_a_refused_address_says_so(url: str) -> None:
    with pytest.raises(EventHubError) as raised:
        valid_url(url, RULES, field="url")
    assert raised.value.code == "refused_address"


def test_a_secret_is_sealed_under_the_hubs_key() -> None:
    secret = secrets.new_secret()
    sealed = secrets.seal("key", secret)
    assert secrets.unseal("key", sealed) == secret
    assert secret not in sealed
    assert secrets.seal("key", secret) != sealed
    for key, data in (("other", sealed), ("key", sealed[:-1]), ("key", b""), ("key", b"\x02" * 60)):
        with pytest.raises(secrets.Unsealable):
            secrets.unseal(key, data)


def test_a_secret_is_written_as_standard_webhooks_says() -> None:
    secret = secrets.new_secret()
    assert secrets.parse_secret(secrets.secret_text(secret)) == secret
    assert secrets.parse_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")[:2] == b"1\xf2"
    for text in ("", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_a", "whsec_" + "A" * 88):
        with pytest.raises(ValueError, match="secret"):
            secrets.parse_secret(text)
