"""The address guard, callback URLs, and encrypted secrets."""

import ipaddress
import re

import pytest

from eventhub.base.errors import EventHubError
from registrations.endpoints import secrets
from registrations.endpoints.addresses import parse_allowed
from registrations.endpoints.callback_url import valid_url
from registrations.endpoints.secrets import Keyring

ALLOWED = parse_allowed(
    [
        *("127.0.0.1:9000", "10.0.0.0/8", "[::1]:80", "hooks.internal", "[fd00::]/8:443"),
        *("fe80::/10", "z=172.16.0.0/12:9000", " z=[::1]:82", "other=127.0.0.0/8"),
    ]
)
RULES = ALLOWED.of_zone("z")
NO_RULES = parse_allowed(["other=0.0.0.0/0", "other=::/0"]).of_zone("z")


# Every row of IANA's two special-purpose registries, by its name there
REGISTERED = {
    '"This network"': "0.0.0.0/8",
    '"This host on this network"': "0.0.0.0/32",
    "Private-Use (10)": "10.0.0.0/8",
    "Shared Address Space": "100.64.0.0/10",
    "Loopback": "127.0.0.0/8",
    "Link Local": "169.254.0.0/16",
    "Private-Use (172)": "172.16.0.0/12",
    "IETF Protocol Assignments": "192.0.0.0/24",
    "IPv4 Service Continuity Prefix": "192.0.0.0/29",
    "IPv4 dummy address": "192.0.0.8/32",
    "Port Control Protocol Anycast": "192.0.0.9/32",
    "Traversal Using Relays around NAT Anycast": "192.0.0.10/32",
    "NAT64/DNS64 Discovery": "192.0.0.170/31",
    "Documentation (TEST-NET-1)": "192.0.2.0/24",
    "AS112-v4": "192.31.196.0/24",
    "AMT": "192.52.193.0/24",
    "Deprecated (6to4 Relay Anycast)": "192.88.99.0/24",
    "6a44-relay anycast address": "192.88.99.2/32",
    "Private-Use (192)": "192.168.0.0/16",
    "Direct Delegation AS112 Service": "192.175.48.0/24",
    "Benchmarking": "198.18.0.0/15",
    "Documentation (TEST-NET-2)": "198.51.100.0/24",
    "Documentation (TEST-NET-3)": "203.0.113.0/24",
    "Reserved": "240.0.0.0/4",
    "Limited Broadcast": "255.255.255.255/32",
    "Loopback Address": "::1/128",
    "Unspecified Address": "::/128",
    "IPv4-IPv6 Translat. (local)": "64:ff9b:1::/48",
    "Discard-Only Address Block": "100::/64",
    "Dummy IPv6 Prefix": "100:0:0:1::/64",
    "IETF Protocol Assignments (v6)": "2001::/23",
    "TEREDO": "2001::/32",
    "Port Control Protocol Anycast (v6)": "2001:1::1/128",
    "Traversal Using Relays around NAT Anycast (v6)": "2001:1::2/128",
    "DNS-SD Service Registration Protocol Anycast": "2001:1::3/128",
    "Benchmarking (v6)": "2001:2::/48",
    "AMT (v6)": "2001:3::/32",
    "AS112-v6": "2001:4:112::/48",
    "Deprecated (previously ORCHID)": "2001:10::/28",
    "ORCHIDv2": "2001:20::/28",
    "Drone Remote ID Protocol Entity Tags": "2001:30::/28",
    "Documentation": "2001:db8::/32",
    "6to4": "2002::/16",
    "Direct Delegation AS112 Service (v6)": "2620:4f:8000::/48",
    "Documentation (3fff)": "3fff::/20",
    "Segment Routing (SRv6) SIDs": "5f00::/16",
    "Unique-Local": "fc00::/7",
    "Link-Local Unicast": "fe80::/10",
}
TRANSLATED = {"IPv4-mapped Address": "::ffff:{}", "IPv4-IPv6 Translat.": "64:ff9b::{}"}


@pytest.mark.parametrize("block", REGISTERED.values(), ids=REGISTERED.keys())
def test_no_address_of_a_special_purpose_block_is_called(block: str) -> None:
    network = ipaddress.ip_network(block)
    addresses = {network[0], network[network.num_addresses // 2], network[-1]}
    texts = [str(address) for address in addresses]
    if network.version == 4:
        texts += [form.format(text) for text in texts for form in TRANSLATED.values()]
    called = [text for text in texts if NO_RULES.allowed(text, "a.example", 443)]
    assert called == []


@pytest.mark.parametrize(
    "address",
    [
        "224.0.0.1", "239.255.255.255", "::127.0.0.1", "::8.8.8.8", "2002:808:808::", "fec0::1",
        "ff02::1", "4000::1", "1fff::1", "fe80::1%eth0", "", "localhost", "1.2.3", "1.2.3.4.5",
    ],
)  # fmt: skip
def test_an_address_outside_of_global_unicast_is_refused(address: str) -> None:
    assert not NO_RULES.allowed(address, "a.example", 443)


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8", "1.1.1.1", "192.31.195.255", "192.31.197.0", "192.175.49.1", "2001:200::1",
        "2606:4700::1111", "2620:4f:8001::1", "::ffff:8.8.8.8", "64:ff9b::808:808",
    ],
)  # fmt: skip
def test_a_public_address_is_allowed(address: str) -> None:
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
        ("172.16.0.1", "a", 9000, True),
        ("172.16.0.1", "a", 9001, False),
        ("::1", "a", 82, True),
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
    [
        *("", "a b", "1.2.3.4:0", "1.2.3.4:99999", "http://a", "10.0.0.0/33", "[::1]x", "[::1]:"),
        *("a/8", "=10.0.0.0/8", "a b=10.0.0.0/8", "z=", "z=a b", "a=b=10.0.0.0/8", "a..b", "-a"),
    ],
)
def test_a_bad_exception_is_named(entry: str) -> None:
    with pytest.raises(ValueError, match=r"EVENTHUB_CALLBACK_ALLOW: .* is not \[ZONE=\]"):
        parse_allowed(["10.0.0.0/8", entry])


@pytest.mark.parametrize(
    ("entry", "written"),
    [
        ("::1:9000", "[::1]:9000 for a port, or [::1:9000]"),
        ("z=fe80::1:80", "z=[fe80::1]:80 for a port, or z=[fe80::1:80]"),
        *(
            (entry, "four numbers")
            for entry in ("10.1", "300.1.1.1", "10.1:80", "0x7f", "1.2.3.4.")
        ),
    ],
)
def test_an_exception_that_means_something_else_is_refused_with_what_to_write(
    entry: str, written: str
) -> None:
    """Each was read as an address, or as a host name that no callback has."""
    with pytest.raises(ValueError, match=re.escape(written)):
        parse_allowed([entry])
    for valid in ("::1", "fd00::7", "2001:db8:0:0:0:0:0:1", "fd00::/8", "[::1:9000]"):
        parse_allowed([valid])


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
def test_a_valid_url_is_not_changed(url: str) -> None:
    assert valid_url(url, RULES, field="url") == url


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "http://[::1]:8080/", "http://localhost/"])
def test_a_url_to_a_private_address_is_refused(url: str) -> None:
    with pytest.raises(EventHubError) as raised:
        valid_url(url, RULES, field="url")
    assert raised.value.code == "refused_address"


def test_a_secret_is_encrypted_under_the_hubs_key() -> None:
    secret, keyring = secrets.new_secret(), Keyring(("key",))
    sealed = keyring.seal(secret)
    assert keyring.unseal(sealed) == secret
    assert secret not in sealed
    assert keyring.seal(secret) != sealed
    for key, data in (("other", sealed), ("key", sealed[:-1]), ("key", b""), ("key", b"\x02" * 60)):
        with pytest.raises(secrets.Unsealable):
            Keyring((key,)).unseal(data)


def test_the_first_key_encrypts_and_all_keys_decrypt() -> None:
    old, new = Keyring(("old",)), Keyring(("new", "older", "old"))
    sealed = old.seal(b"secret")
    assert new.unseal(sealed) == b"secret"
    assert not new.is_current(sealed)
    again = new.seal(b"secret")
    assert new.is_current(again)
    with pytest.raises(secrets.Unsealable, match="EVENTHUB_SECRET_KEY_FALLBACKS"):
        old.unseal(again)


def test_a_secret_has_the_form_of_standard_webhooks() -> None:
    secret = secrets.new_secret()
    assert secrets.parse_secret(secrets.secret_text(secret)) == secret
    assert secrets.parse_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")[:2] == b"1\xf2"
    for text in ("", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_a", "whsec_" + "A" * 88):
        with pytest.raises(ValueError, match="secret"):
            secrets.parse_secret(text)
