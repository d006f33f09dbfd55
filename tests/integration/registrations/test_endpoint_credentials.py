"""Headers, authentication and certificates of endpoints through the management API: they can be set
and are never shown.
"""

import json
import ssl
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from eventhub.base import limits
from eventhub.base.strict_json import printable
from registrations.endpoints.signing_secrets import keyring
from tests.certificates import Authority
from tests.integration.access_world import refused
from tests.integration.registrations.test_registrations import announced, rows, world
from tests.integration.registrations.test_registrations_endpoints import URL, new_endpoint

pytestmark = pytest.mark.django_db
BASIC = {"type": "basic", "username": "hub", "password": "sesame-basic"}
BEARER = {"type": "bearer", "token": "sesame-bearer"}
OAUTH2 = {
    "type": "oauth2_client_credentials",
    "token_url": "https://id.example/token",
    "client_id": "hub",
    "client_secret": "sesame-oauth2",
    "scopes": ["events"],
}
AUTHORITY = Authority("the tests")
CERTIFICATE, KEY = AUTHORITY.issue("hub.example")
OTHER_CERTIFICATE, OTHER_KEY = AUTHORITY.issue("other.example")
TLS = {"certificate": CERTIFICATE, "private_key": KEY, "ca": AUTHORITY.pem}


def stored(kind: str) -> Any:
    """Return the decrypted credential of the only endpoint; None if there is none."""
    found = rows("SELECT sealed FROM endpoint_secrets WHERE kind = %s", kind)
    return json.loads(keyring().unseal(bytes(found[0][0]))) if found else None


def test_headers_are_merged_removed_and_shown_without_their_values() -> None:
    manager = world()
    found = new_endpoint(manager, headers={"X-Api-Key": "sesame-1", "x-b": "2"})
    path = f"/v1/endpoints/{found['id']}"
    assert [each["name"] for each in found["headers"]] == ["x-api-key", "x-b"]
    assert all(len(each["digest"]) == 4 for each in found["headers"])
    assert stored("headers") == {"x-api-key": "sesame-1", "x-b": "2"}
    changed = manager.patch(path, {"headers": {"x-B": None, "x-c": "3"}}).json()
    assert [each["name"] for each in changed["headers"]] == ["x-api-key", "x-c"]
    assert changed["headers"][0] == found["headers"][0]
    [(type, event)] = announced(1)
    assert (type, "headers" in event) == ("endpoint.changed", False)
    assert manager.patch(path, {"headers": {}}).json()["headers"] == changed["headers"]
    assert stored("headers") == {"x-api-key": "sesame-1", "x-c": "3"}
    assert manager.patch(path, {"headers": None}).json()["headers"] is None
    assert stored("headers") is None


def test_credentials_that_are_stored_already_change_nothing() -> None:
    """They dropped the access token of OAuth, and were announced."""
    manager = world()
    given = {"headers": {"x-k": "sesame-1"}, "authentication": OAUTH2, "tls": TLS}
    path = f"/v1/endpoints/{new_endpoint(manager, **given)['id']}"
    rows(
        "INSERT INTO endpoint_tokens (secret_id, endpoint_id, sealed, expires_at)"
        " SELECT id, endpoint_id, sealed, now() + interval '1 hour' FROM endpoint_secrets"
        "  WHERE kind = 'authentication' RETURNING 1"
    )
    tables = ("endpoints", "endpoint_secrets", "endpoint_tokens")
    stored_rows = [f"SELECT t::text FROM {table} t ORDER BY 1" for table in tables]
    before = [announced(1), manager.get(path).json(), *map(rows, stored_rows)]
    assert manager.patch(path, given).json() == before[1]
    assert manager.patch(path, {**given, "headers": {"x-l": None}}).status_code == 200
    assert [announced(1), manager.get(path).json(), *map(rows, stored_rows)] == before
    assert manager.patch(path, {**given, "authentication": BEARER}).status_code == 200
    assert rows("SELECT count(*) FROM endpoint_tokens") == [(0,)]


def test_a_certificate_may_have_a_comment_in_any_language() -> None:
    commented = {name: f"# Prüfstelle\n{pem}" for name, pem in TLS.items()}
    assert new_endpoint(world(), tls=commented)["tls"]["certificate"]["subject"] == "CN=hub.example"
    assert stored("tls") == commented


def test_an_authentication_is_replaced_as_a_whole() -> None:
    manager = world()
    found = new_endpoint(manager, authentication=BASIC)
    path = f"/v1/endpoints/{found['id']}"
    digest = found["authentication"].pop("digest")
    assert found["authentication"] == {"type": "basic", "username": "hub"}
    assert len(digest) == 4
    shown = manager.patch(path, {"authentication": OAUTH2}).json()["authentication"]
    assert shown.pop("digest") != digest
    secret = {"client_secret": OAUTH2["client_secret"]}
    assert {**shown, **secret} == {**OAUTH2, "client_authentication": "basic"}
    assert stored("authentication") == {**OAUTH2, "client_authentication": "basic"}
    bearer = manager.patch(path, {"authentication": BEARER}).json()["authentication"]
    assert bearer["type"] == "bearer"
    assert manager.patch(path, {"authentication": None}).json()["authentication"] is None
    assert stored("authentication") is None


def test_a_certificate_is_shown_without_its_key() -> None:
    found = new_endpoint(world(), tls=TLS)["tls"]
    assert found["certificate"]["subject"] == "CN=hub.example"
    assert found["certificate"]["issuer"] == found["ca"][0]["subject"] == "CN=the tests"
    assert found["certificate"]["not_after"] > "2026"
    assert stored("tls") == TLS


def test_no_answer_and_no_list_has_a_secret() -> None:
    manager = world()
    created = manager.post(
        "/v1/endpoints",
        {"url": URL, "headers": {"x-k": "sesame-1"}, "authentication": OAUTH2, "tls": TLS},
    )
    path = f"/v1/endpoints/{created.json()['id']}"
    changed = manager.patch(path, {"headers": {"x-l": "sesame-2"}, "authentication": BASIC})
    answers = (created, changed, manager.get(path), manager.get("/v1/endpoints"))
    for answer in (*answers, manager.get(f"{path}/secrets")):
        assert answer.status_code in (200, 201)
        assert b"sesame" not in answer.content
        assert b"PRIVATE KEY" not in answer.content
    assert "sesame" not in str(rows("SELECT s::text FROM endpoint_secrets s"))


def test_credentials_are_not_sent_to_another_host() -> None:
    """A key that may change the URL could have the write-only secrets sent to itself."""
    manager = world()
    found = new_endpoint(manager, headers={"x-k": "sesame-1"}, authentication=BASIC)
    path = f"/v1/endpoints/{found['id']}"
    other = "https://thief.example/"
    problem = refused(manager.patch(path, {"url": other}), 409, "credentials_bound")
    assert problem["position"] == {"field": "authentication"}
    refused(manager.patch(path, {"url": other, "headers": {}}), 409, "credentials_bound")
    assert manager.patch(path, {"url": f"{URL}&more"}).status_code == 200
    body = {"url": other, "authentication": BEARER, "headers": {"x-l": "2"}}
    changed = manager.patch(path, body).json()
    assert changed["url"] == other
    assert stored("headers") == {"x-l": "2"}
    removed = manager.patch(path, {"url": URL, "authentication": None, "headers": None}).json()
    assert (removed["authentication"], removed["headers"]) == (None, None)


def test_headers_that_cannot_be_decrypted_are_not_merged() -> None:
    manager = world()
    path = f"/v1/endpoints/{new_endpoint(manager, headers={'x-k': 'sesame-1'})['id']}"
    rows("UPDATE endpoint_secrets SET sealed = '\\x0102' WHERE kind = 'headers' RETURNING 1")
    refused(manager.patch(path, {"headers": {"x-l": "2"}}), 409, "credentials_unreadable")
    assert manager.patch(path, {"headers": None}).json()["headers"] is None


LONG = "x" * (limits.ENDPOINT_HEADER_VALUE_CHARS_MAX + 1)
PEM_OF_NOTHING = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"
# A certificate and its key on the curve prime239v1, which the hub does not support
ODD_CURVE = """-----BEGIN CERTIFICATE-----
MIIBajCCARWgAwIBAgIUad9smj+Kh5OGnnXbKokLytBhID8wCgYIKoZIzj0EAwIw
DjEMMAoGA1UEAwwDb2RkMCAXDTI2MTEyNjE1MzEzOFoYDzIxMjYxMTAyMTUzMTM4
WjAOMQwwCgYDVQQDDANvZGQwVTATBgcqhkjOPQIBBggqhkjOPQMBBAM+AARGU1Ci
Vy2p+KjbLq3uOQch/2gt38uG+okDvF4IUbtjo1nxCBgb1XDlbiRxKEhdjJdb5sKS
QB6VZKlAmO2jUzBRMB0GA1UdDgQWBBQDoqscvICjVG32FYEmk/eQ/BOA+DAfBgNV
HSMEGDAWgBQDoqscvICjVG32FYEmk/eQ/BOA+DAPBgNVHRMBAf8EBTADAQH/MAoG
CCqGSM49BAMCA0MAMEACHnjAEMq10FmJW/94uZXqUIPqi4FxoOETHaNutEOdPAIe
EMcD+6/KwRObqbkTxUFf0n/1amdLAzZeQh3IVBQG
-----END CERTIFICATE-----"""
ODD_CURVE_KEY = """-----BEGIN PRIVATE KEY-----
MIGBAgEAMBMGByqGSM49AgEGCCqGSM49AwEEBGcwZQIBAQQeaHY4zBjn2OWfENDQ
M5lXp2yUqARHPtgz+F7gsibeoUADPgAERlNQolctqfio2y6t7jkHIf9oLd/LhvqJ
A7xeCFG7Y6NZ8QgYG9Vw5W4kcShIXYyXW+bCkkAelWSpQJjt
-----END PRIVATE KEY-----"""


def edited(pem: str, before: bytes, after: bytes) -> str:
    """Return a certificate with other bytes in it."""
    der = ssl.PEM_cert_to_DER_cert(pem)
    assert der.count(before) >= 1
    return ssl.DER_cert_to_PEM_cert(der.replace(before, after, 1))


VERSION_5 = edited(AUTHORITY.pem, b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x04")
NO_TEXT_NAME = edited(AUTHORITY.pem, b"\x0c\x09the tests", b"\x14\x09\xff\xfe tests ")
EXPIRED, EXPIRED_KEY = AUTHORITY.issue("late.example", until=datetime.now(UTC) - timedelta(days=1))
BAD = [
    *(({"headers": {name: "x"}}, f"headers.{name}")
      for name in ("host", "Content-Type", "webhook-id", "CE-id", "eventhub-x", "connection", "TE",
                   "transfer-encoding", "proxy-authorization", "a b", "a:", "é")),
    ({"headers": {"x" * 129: "x"}}, f"headers.{printable('x' * 129)}"),
    *(({"headers": {"x-a": value}}, "headers.x-a")
      for value in ("", " a", "a ", "a\r\nb: c", "a\0", "é", LONG, 1)),
    ({"headers": {"": "x"}}, "headers."),
    ({"headers": {"x-a": "1", "X-A": "2"}}, "headers"),
    ({"headers": {f"x-{n}": "1" for n in range(limits.ENDPOINT_HEADERS_MAX + 1)}}, "headers"),
    ({"headers": {"x-a": "1" * 4_096, "x-b": "1" * 4_096}}, "headers"),
    ({"headers": []}, "headers"),
    ({"headers": {"authorization": "x"}, "authentication": BEARER}, "headers"),
    ({"authentication": {"type": "digest"}}, "authentication.type"),
    ({"authentication": "basic"}, "authentication"),
    ({"authentication": {**BASIC, "username": "a:b"}}, "authentication.username"),
    ({"authentication": {**BASIC, "password": "a\nb"}}, "authentication.password"),
    ({"authentication": {**BEARER, "token": "a b"}}, "authentication.token"),
    ({"authentication": {**OAUTH2, "token_url": "x"}}, "authentication.token_url"),
    ({"authentication": {**OAUTH2, "client_authentication": "x"}},
     "authentication.client_authentication"),
    ({"authentication": {**OAUTH2, "scopes": "a"}}, "authentication.scopes"),
    ({"tls": {"certificate": "x", "private_key": KEY}}, "tls.certificate"),
    ({"tls": {"certificate": PEM_OF_NOTHING, "private_key": KEY}}, "tls.certificate"),
    ({"tls": {"certificate": CERTIFICATE, "private_key": OTHER_KEY}}, "tls.private_key"),
    ({"tls": {"certificate": CERTIFICATE, "private_key": "x"}}, "tls.private_key"),
    ({"tls": {"certificate": EXPIRED, "private_key": EXPIRED_KEY}}, "tls.certificate"),
    ({"tls": {"ca": "x"}}, "tls.ca"),
    ({"tls": {"ca": VERSION_5}}, "tls.ca"),
    ({"tls": {"ca": NO_TEXT_NAME}}, "tls.ca"),
    ({"tls": {"ca": AUTHORITY.pem + NO_TEXT_NAME}}, "tls.ca"),
    ({"tls": {"certificate": ODD_CURVE, "private_key": ODD_CURVE_KEY}}, "tls.private_key"),
    ({"tls": {"certificate": ODD_CURVE, "private_key": KEY}}, "tls.private_key"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "field"), BAD, ids=[f"{at} {field}" for at, (_, field) in enumerate(BAD)]
)
def test_bad_credentials_are_refused(body: dict[str, Any], field: str) -> None:
    manager = world()
    problem = refused(manager.post("/v1/endpoints", {"url": URL, **body}), 400, "invalid_field")
    assert problem["position"] == {"field": field}
    path = f"/v1/endpoints/{new_endpoint(manager)['id']}"
    refused(manager.patch(path, body), 400, "invalid_field")
    assert rows("SELECT count(*) FROM endpoint_secrets WHERE kind <> 'v1'") == [(0,)]


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"authentication": {}}, "missing_field", "authentication.type"),
        ({"authentication": {"type": "basic"}}, "missing_field", "authentication.username"),
        ({"authentication": {**BEARER, "username": "a"}}, "unknown_field",
         "authentication.username"),
        ({"authentication": {**BASIC, "x": 1}}, "unknown_field", "authentication.x"),
        ({"authentication": {**OAUTH2, "token_url": "http://10.0.0.1/"}}, "refused_address",
         "authentication.token_url"),
        ({"authentication": {**BEARER, "token": "x" * 5_000}}, "field_too_long",
         "authentication.token"),
        ({"tls": {}}, "missing_field", "tls.certificate"),
        ({"tls": {"certificate": CERTIFICATE}}, "missing_field", "tls.private_key"),
        ({"tls": {"private_key": KEY}}, "missing_field", "tls.certificate"),
    ],
)  # fmt: skip
def test_incomplete_credentials_are_refused(body: dict[str, Any], code: str, field: str) -> None:
    problem = refused(world().post("/v1/endpoints", {"url": URL, **body}), 400, code)
    assert problem["position"] == {"field": field}
