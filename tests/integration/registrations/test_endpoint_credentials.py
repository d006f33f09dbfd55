"""Headers, authentication and certificates of endpoints through the management API: they can be set
and are never shown.
"""

import json
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
    assert manager.patch(path, {"headers": {}}).json()["headers"] is None
    assert stored("headers") is None


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
