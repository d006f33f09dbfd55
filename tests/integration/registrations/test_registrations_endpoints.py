"""Endpoints through the management API, and the deletion of clients with all their resources."""

from typing import Any

import pytest

from eventhub.base import limits
from registrations.endpoints import secrets
from registrations.endpoints.signing_secrets import keyring
from tests.integration.access_world import EVERYTHING, ApiCaller, caller_with, refused
from tests.integration.registrations.test_registrations import announced, made, rows, stored, world

pytestmark = pytest.mark.django_db
URL = "https://hooks.example/orders?shop=1"
ORDER = {"streams": ["orders"]}


def new_endpoint(caller: ApiCaller, **more: Any) -> Any:
    answer = caller.post("/v1/endpoints", {"url": URL, **more})
    assert answer.status_code == 201, answer.content
    assert answer["Cache-Control"] == "no-store"
    return answer.json()


def test_an_endpoint_is_returned_without_its_secret() -> None:
    manager = world()
    found = new_endpoint(manager, description="orders", ordered=True)
    secret = found.pop("secret")
    assert found["client"] == "tester"
    assert (found["url"], found["description"], found["ordered"]) == (URL, "orders", True)
    assert (found["enabled"], found["reason"]) == (True, None)
    assert manager.get(f"/v1/endpoints/{found['id']}").json() == found
    assert manager.get("/v1/endpoints").json() == {"items": [found], "next": None}
    [(type, event)] = announced(1)
    assert type == "endpoint.created"
    assert event.pop("by")["client"] == "tester"
    assert event == {"zone": "default", "client": "tester", "endpoint": found["id"],
                    "kind": "https", "ordered": True, "order_by": ""}  # fmt: skip
    [(sealed,)] = rows("SELECT secret FROM endpoints")
    assert rows("SELECT sealed FROM endpoint_secrets") == [(sealed,)]
    assert keyring().unseal(bytes(sealed)) == secrets.parse_secret(secret)
    assert secret.encode() not in bytes(sealed)
    assert len(secrets.parse_secret(secret)) == 32


def test_a_client_may_give_its_own_secret() -> None:
    text = secrets.secret_text(b"x" * 24)
    assert new_endpoint(world(), secret=text)["secret"] == text


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({}, "missing_field", "url"),
        ({"url": 1}, "invalid_field", "url"),
        ({"url": ""}, "invalid_field", "url"),
        ({"url": "example.com"}, "invalid_field", "url"),
        ({"url": "ftp://example.com/"}, "invalid_field", "url"),
        ({"url": "https:example.com/"}, "invalid_field", "url"),
        ({"url": "https:///path"}, "invalid_field", "url"),
        ({"url": "https://me:secret@example.com/"}, "invalid_field", "url"),
        ({"url": "https://@example.com/"}, "invalid_field", "url"),
        ({"url": "https://example.com/#part"}, "invalid_field", "url"),
        ({"url": "https://example.com/#"}, "invalid_field", "url"),
        ({"url": "https://exa mple.com/"}, "invalid_field", "url"),
        ({"url": "https://exämple.com/"}, "invalid_field", "url"),
        ({"url": "https://example.com/\n"}, "invalid_field", "url"),
        ({"url": "https://example.com\\@a.example/"}, "invalid_field", "url"),
        ({"url": "https://a..example/"}, "invalid_field", "url"),
        ({"url": "https://example.com:0/"}, "invalid_field", "url"),
        ({"url": "https://example.com:70000/"}, "invalid_field", "url"),
        ({"url": "https://[::1/"}, "invalid_field", "url"),
        ({"url": "https://[v1.a]/"}, "invalid_field", "url"),
        ({"url": "http://2130706433/"}, "invalid_field", "url"),
        ({"url": "http://0x7f.1/"}, "invalid_field", "url"),
        ({"url": "http://127.1/"}, "invalid_field", "url"),
        ({"url": "https://example.com/" + "a" * 2_048}, "field_too_long", "url"),
        ({"url": "http://localhost/"}, "refused_address", "url"),
        ({"url": "http://LOCALHOST./"}, "refused_address", "url"),
        ({"url": "http://x.localhost/"}, "refused_address", "url"),
        ({"url": "http://10.0.0.1/"}, "refused_address", "url"),
        ({"url": "http://169.254.169.254/latest"}, "refused_address", "url"),
        ({"url": "http://[::1]/"}, "refused_address", "url"),
        ({"url": "http://[::ffff:10.0.0.1]/"}, "refused_address", "url"),
        ({"url": "http://[fe80::1%25eth0]/"}, "invalid_field", "url"),
        ({"url": "http://[2606:4700::1111%25lo]/"}, "invalid_field", "url"),
        ({"url": "http://[2606:4700::1111%lo]/"}, "invalid_field", "url"),
        ({"url": "http://0.0.0.0/"}, "refused_address", "url"),
        ({"url": URL, "secret": "abc"}, "invalid_field", "secret"),
        ({"url": URL, "secret": "whsec_!"}, "invalid_field", "secret"),
        ({"url": URL, "secret": "whsec_c2hvcnQ="}, "invalid_field", "secret"),
        ({"url": URL, "ordered": "true"}, "invalid_field", "ordered"),
        ({"url": URL, "ordered": 1}, "invalid_field", "ordered"),
        ({"url": URL, "description": "x" * 1_025}, "field_too_long", "description"),
        ({"url": URL, "description": "\0"}, "invalid_field", "description"),
        ({"url": URL, "enabled": True}, "unknown_field", "enabled"),
    ],
)
def test_a_bad_endpoint_is_refused(body: dict[str, Any], code: str, field: str) -> None:
    manager = world()
    before = stored()
    problem = refused(manager.post("/v1/endpoints", body), 400, code)
    assert problem["position"] == {"field": field}
    assert stored() == before


def test_an_endpoint_is_changed_disabled_and_enabled() -> None:
    manager = world()
    found = new_endpoint(manager)
    del found["secret"]
    path = f"/v1/endpoints/{found['id']}"
    before = stored()
    for same in ({}, {"enabled": True}, {"url": URL, "ordered": False, "description": ""}):
        assert manager.patch(path, same).json() == found
    assert stored() == before
    off = manager.patch(path, {"enabled": False, "description": "off"}).json()
    assert (off["enabled"], off["reason"], off["description"]) == (False, "request", "off")
    [(type, event)] = announced(1)
    assert (type, event["enabled"], event["reason"]) == ("endpoint.changed", False, "request")
    assert "url" not in event
    on = manager.patch(path, {"enabled": True}).json()
    assert (on["enabled"], on["reason"]) == (True, None)
    refused(manager.patch(path, {"url": "http://10.0.0.1/"}), 400, "refused_address")
    refused(manager.patch(path, {"secret": "x"}), 400, "unknown_field")
    refused(manager.patch(path, {"enabled": None}), 400, "invalid_field")


def test_the_order_and_the_batches_of_an_endpoint_are_set_and_changed() -> None:
    manager = world()
    found = new_endpoint(manager, ordered=True, order_by="customer.id", batch={"events_max": 100})
    path = f"/v1/endpoints/{found['id']}"
    batch = {"events_max": 100, "bytes_max": limits.BATCH_BYTES_DEFAULT, "linger_ms": 0}
    assert (found["order_by"], found["batch"]) == ("customer.id", batch)
    assert manager.get("/v1/endpoints").json()["items"][0]["batch"] == batch
    batch |= {"linger_ms": 500, "bytes_max": 4_096}
    changed = manager.patch(path, {"order_by": "@key", "batch": batch}).json()
    assert (changed["order_by"], changed["batch"]) == ("@key", batch)
    [(type, event)] = announced(1)
    assert (type, event["ordered"], event["order_by"]) == ("endpoint.changed", True, "@key")
    again = manager.patch(path, {"batch": {"events_max": 100}}).json()
    assert again["batch"] == batch | {"linger_ms": 0, "bytes_max": limits.BATCH_BYTES_DEFAULT}
    without = manager.patch(path, {"order_by": "", "batch": None}).json()
    assert (without["order_by"], without["batch"]) == ("", None)
    assert new_endpoint(manager)["batch"] is None


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"order_by": "@nothing"}, "invalid_field", "order_by"),
        ({"order_by": 7}, "invalid_field", "order_by"),
        ({"order_by": "x" * 2_000}, "field_too_long", "order_by"),
        ({"batch": {}}, "missing_field", "batch.events_max"),
        ({"batch": {"events_max": 1}}, "invalid_field", "batch.events_max"),
        ({"batch": {"events_max": 1_001}}, "invalid_field", "batch.events_max"),
        ({"batch": {"events_max": 2, "linger_ms": -1}}, "invalid_field", "batch.linger_ms"),
        ({"batch": {"events_max": 2, "bytes_max": 1}}, "invalid_field", "batch.bytes_max"),
        ({"batch": {"events_max": 2, "size": 1}}, "unknown_field", "batch.size"),
        ({"batch": 7}, "invalid_field", "batch"),
        ({"batch": {"linger_ms": 5}}, "missing_field", "batch.events_max"),
        ({"authentication": {}}, "missing_field", "authentication.type"),
        ({"authentication": {"token": "x"}}, "missing_field", "authentication.type"),
    ],
)
def test_a_bad_field_is_refused(body: dict[str, Any], code: str, field: str) -> None:
    """In the creation, and in a change."""
    manager = world()
    problem = refused(manager.post("/v1/endpoints", {"url": URL, **body}), 400, code)
    assert problem["position"] == {"field": field}
    path = f"/v1/endpoints/{new_endpoint(manager)['id']}"
    assert refused(manager.patch(path, body), 400, code)["position"] == {"field": field}


def test_an_endpoint_in_use_is_not_deleted() -> None:
    manager = world()
    found = new_endpoint(manager)
    registration = made(manager, {**ORDER, "endpoint": found["id"]})
    path = f"/v1/endpoints/{found['id']}"
    refused(manager.delete(path), 409, "endpoint_in_use")
    assert registration["callback"] == URL
    changed = manager.patch(f"/v1/registrations/{registration['id']}", {"endpoint": None}).json()
    assert (changed["endpoint"], changed["callback"], changed["version"]) == (None, None, 2)
    assert manager.delete(path).status_code == 204
    assert announced(1)[0][0] == "endpoint.deleted"
    for answer in (manager.get(path), manager.patch(path, {}), manager.delete(path)):
        refused(answer, 404, "unknown_endpoint")
    assert manager.get("/v1/endpoints").json()["items"] == []
    for body in ({"endpoint": found["id"]},):
        refused(
            manager.patch(f"/v1/registrations/{registration['id']}", body), 404, "unknown_endpoint"
        )
    again = made(manager, {**ORDER, "callback": URL})
    assert again["endpoint"] != found["id"]


def test_an_endpoint_belongs_to_its_client() -> None:
    manager = world()
    them = caller_with("listen:*", client_name="them")
    theirs = new_endpoint(them)
    mine = caller_with("listen:*", client_name="me")
    path = f"/v1/endpoints/{theirs['id']}"
    for answer in (mine.get(path), mine.patch(path, {"enabled": False}), mine.delete(path)):
        refused(answer, 404, "unknown_endpoint")
    body = {**ORDER, "endpoint": theirs["id"]}
    refused(mine.post("/v1/registrations", body), 404, "unknown_endpoint")
    refused(manager.post("/v1/registrations", body), 404, "unknown_endpoint")
    registration = made(manager, {**body, "client": "them"})
    assert them.get(f"/v1/registrations/{registration['id']}").json()["client"] == "them"
    refused(mine.post("/v1/endpoints", {"url": URL, "client": "them"}), 403, "forbidden")
    assert new_endpoint(manager, client="them")["client"] == "them"
    assert len(manager.get("/v1/endpoints?client=them").json()["items"]) == 2
    assert mine.get("/v1/endpoints").json()["items"] == []
    page = manager.get("/v1/endpoints?limit=1").json()
    assert page["next"] == str(theirs["id"])
    assert len(manager.get(f"/v1/endpoints?after={page['next']}").json()["items"]) == 1


def test_a_client_has_a_bounded_number_of_endpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ENDPOINTS_PER_CLIENT_MAX", 1)
    manager = world()
    new_endpoint(manager)
    refused(manager.post("/v1/endpoints", {"url": URL}), 409, "limit_reached")
    body = {**ORDER, "callback": "https://other.example/"}
    refused(manager.post("/v1/registrations", body), 409, "limit_reached")


def test_deleting_a_client_ends_all_its_resources_at_once() -> None:
    manager = world()
    leaving = caller_with("listen:*", client_name="leaving")
    body = {**ORDER, "callback": "https://a.example/"}
    registrations = [item["id"] for item in made(leaving, [body] * 5)["items"]]
    made(leaving, {"streams": ["returns", "orders"]})
    kept = made(manager, ORDER)
    assert manager.delete("/v1/clients/leaving").status_code == 204
    events = announced(4)
    assert [type for type, _ in events] == [
        "key.revoked",
        "registration.deleted",
        "endpoint.deleted",
        "client.deleted",
    ]
    barrier = events[1][1]["barrier"]
    assert events[1][1].pop("by")["client"] == "tester"
    assert events[1][1] == {"zone": "default", "client": "leaving", "registration": None,
                          "registrations": 6, "barrier": barrier}  # fmt: skip
    assert rows("SELECT cardinality(streams) FROM barriers WHERE id = %s", barrier) == [(2,)]
    ends = rows("SELECT DISTINCT until_barrier FROM registration_versions ORDER BY 1")
    assert ends == [(barrier,), (None,)]
    refused(leaving.get("/v1/registrations"), 401, "invalid_credentials")
    refused(manager.get("/v1/clients/leaving"), 404, "not_found")
    refused(manager.delete("/v1/clients/leaving"), 404, "not_found")
    refused(manager.get("/v1/registrations?client=leaving"), 404, "not_found")
    refused(manager.get(f"/v1/registrations/{registrations[0]}"), 404, "unknown_registration")
    assert manager.get("/v1/registrations").json()["items"] == [kept]
    assert manager.get("/v1/endpoints").json()["items"] == []
    names = [item["name"] for item in manager.get("/v1/clients").json()["items"]]
    assert names == ["tester"]


def test_a_client_with_the_name_of_a_deleted_one_has_none_of_its_resources() -> None:
    manager = world()
    first = caller_with("listen:*", client_name="again")
    made(first, ORDER)
    assert manager.delete("/v1/clients/again").status_code == 204
    assert manager.post("/v1/clients", {"name": "again"}).status_code == 201
    second = caller_with("listen:*", client_name="again")
    assert second.get("/v1/registrations").json()["items"] == []
    assert manager.get("/v1/clients/again/keys").json()["items"][0]["revoked_at"] is None
    assert len(manager.get("/v1/clients/again/keys").json()["items"]) == 1
    refused(first.get("/v1/registrations"), 401, "invalid_credentials")
    refused(manager.post("/v1/clients", {"name": "again"}), 409, "conflict")
    made(second, ORDER)
    assert manager.delete("/v1/clients/again").status_code == 204


def test_deleting_a_client_needs_a_manager_of_the_zone() -> None:
    caller_with("listen:*", client_name="them")
    refused(caller_with("manage:orders").delete("/v1/clients/them"), 403, "forbidden")
    far = caller_with(*EVERYTHING, zone_name="far")
    refused(far.delete("/v1/clients/them"), 404, "not_found")
