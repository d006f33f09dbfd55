"""The secrets that sign callbacks, through the management API: rotation, overlap, revocation."""

from typing import Any

import pytest

from eventhub.base import limits
from registrations.endpoints import secrets
from registrations.endpoints.signing_secrets import keyring
from tests.integration.access_world import ApiCaller, caller_with, refused
from tests.integration.registrations.test_registrations import announced, made, rows, world
from tests.integration.registrations.test_registrations_endpoints import ORDER, new_endpoint

pytestmark = pytest.mark.django_db


def rotate(caller: ApiCaller, endpoint: int, body: Any = None, **more: Any) -> Any:
    answer = caller.post(f"/v1/endpoints/{endpoint}/secrets", body, **more)
    assert answer.status_code == 201, answer.content
    assert answer["Cache-Control"] == "no-store"
    return answer.json()


def valid(caller: ApiCaller, endpoint: int) -> list[Any]:
    return caller.get(f"/v1/endpoints/{endpoint}/secrets").json()["items"]


def test_a_new_secret_is_shown_once_and_the_one_before_it_is_valid_for_a_day() -> None:
    manager = world()
    found = new_endpoint(manager)
    id = found["id"]
    [first] = valid(manager, id)
    assert (first["signature"], first["public_key"], first["expires_at"]) == ("v1", None, None)
    second = rotate(manager, id)
    assert second["secret"] != found["secret"]
    [old, new] = valid(manager, id)
    assert new == {name: value for name, value in second.items() if name != "secret"}
    assert (old["id"], new["expires_at"]) == (first["id"], None)
    [(left,)] = rows(
        "SELECT extract(epoch FROM expires_at - now())::int FROM endpoint_secrets WHERE id = %s",
        old["id"],
    )
    assert left == limits.ENDPOINT_SECRET_OVERLAP_S_DEFAULT
    [(type, event)] = announced(1)
    assert (type, event["endpoint"]) == ("endpoint.changed", id)
    assert "secret" not in str(event)
    [(sealed, changed)] = rows("SELECT secret, changed_at > created_at FROM endpoints")
    assert secrets.secret_text(keyring().unseal(bytes(sealed))) == second["secret"]
    assert not changed  # all in one transaction of the test


def test_a_rotation_without_overlap_revokes_every_secret_before_it() -> None:
    manager = world()
    id = new_endpoint(manager)["id"]
    rotate(manager, id)
    last = rotate(manager, id, {"overlap_s": 0})
    assert [each["id"] for each in valid(manager, id)] == [last["id"]]


def test_a_client_may_give_its_own_secret() -> None:
    manager = world()
    id = new_endpoint(manager)["id"]
    text = secrets.secret_text(b"y" * 64)
    assert rotate(manager, id, {"secret": text})["secret"] == text


def test_the_public_key_of_v1a_is_shown_and_rotated_like_a_secret() -> None:
    manager = world()
    found = new_endpoint(manager, signature="v1a")
    id, path = found["id"], f"/v1/endpoints/{found['id']}"
    assert found["public_key"].startswith("whpk_")
    assert found["signature"] == "v1a"
    created = rotate(manager, id, {"signature": "v1a"})
    assert created["secret"] is None
    assert manager.get(path).json()["public_key"] == created["public_key"] != found["public_key"]
    assert manager.get("/v1/endpoints").json()["items"][0]["public_key"] == created["public_key"]
    keys = [each["public_key"] for each in valid(manager, id) if each["signature"] == "v1a"]
    assert keys == [found["public_key"], created["public_key"]]


def test_a_key_pair_is_generated_when_v1a_is_first_used_or_before() -> None:
    manager = world()
    id = new_endpoint(manager)["id"]
    path = f"/v1/endpoints/{id}"
    assert manager.get(path).json()["public_key"] is None
    both = manager.patch(path, {"signature": "both"}).json()
    assert both["public_key"].startswith("whpk_")
    assert manager.patch(path, {"signature": "v1"}).json()["public_key"] == both["public_key"]
    assert manager.patch(path, {"signature": "v1a"}).json()["public_key"] == both["public_key"]
    other = new_endpoint(manager)["id"]
    prepared = rotate(manager, other, {"signature": "v1a"})["public_key"]
    changed = manager.patch(f"/v1/endpoints/{other}", {"signature": "v1a"}).json()
    assert changed["public_key"] == prepared


def test_only_a_previous_secret_is_revoked() -> None:
    manager = world()
    id = new_endpoint(manager)["id"]
    new = rotate(manager, id)
    [old] = [each for each in valid(manager, id) if each["expires_at"]]
    path = f"/v1/endpoints/{id}/secrets"
    refused(manager.delete(f"{path}/{new['id']}"), 409, "secret_in_use")
    assert manager.delete(f"{path}/{old['id']}").status_code == 204
    assert announced(1)[0][0] == "endpoint.changed"
    assert [each["id"] for each in valid(manager, id)] == [new["id"]]
    refused(manager.delete(f"{path}/{old['id']}"), 404, "unknown_secret")
    refused(manager.delete(f"{path}/x"), 404, "unknown_secret")


def test_credentials_of_an_endpoint_are_not_among_its_secrets() -> None:
    """They were listed, with what is shown of them as a public key."""
    manager = world()
    id = new_endpoint(manager, headers={"x-api-key": "sesame"})["id"]
    assert [each["signature"] for each in valid(manager, id)] == ["v1"]
    [(credential,)] = rows("SELECT id FROM endpoint_secrets WHERE kind = 'headers'")
    refused(manager.delete(f"/v1/endpoints/{id}/secrets/{credential}"), 404, "unknown_secret")


def test_the_number_of_valid_secrets_is_bounded() -> None:
    manager = world()
    id = new_endpoint(manager)["id"]
    for _ in range(limits.ENDPOINT_SECRETS_MAX - 1):
        rotate(manager, id)
    path = f"/v1/endpoints/{id}/secrets"
    refused(manager.post(path), 409, "limit_reached")
    rows("UPDATE endpoint_secrets SET expires_at = now() WHERE expires_at IS NOT NULL RETURNING 1")
    assert len(valid(manager, id)) == 1
    rotate(manager, id)
    assert rows("SELECT count(*) FROM endpoint_secrets") == [(2,)]


def test_a_rotation_takes_the_condition_of_its_endpoint() -> None:
    manager = world()
    id = new_endpoint(manager)["id"]
    etag = manager.get(f"/v1/endpoints/{id}")["ETag"]
    rotate(manager, id, headers={"If-Match": etag})
    answer = manager.post(f"/v1/endpoints/{id}/secrets", headers={"If-Match": etag})
    refused(answer, 412, "changed")
    [old, _] = valid(manager, id)
    answer = manager.delete(f"/v1/endpoints/{id}/secrets/{old['id']}", headers={"If-Match": etag})
    refused(answer, 412, "changed")


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"secret": "abc"}, "invalid_field", "secret"),
        ({"secret": "whsec_c2hvcnQ="}, "invalid_field", "secret"),
        ({"secret": "whsec_" + "A" * 88}, "invalid_field", "secret"),
        ({"signature": "v2"}, "invalid_field", "signature"),
        ({"signature": "both"}, "invalid_field", "signature"),
        ({"signature": "v1a", "secret": secrets.secret_text(bytes(32))}, "invalid_field", "secret"),
        ({"overlap_s": -1}, "invalid_field", "overlap_s"),
        ({"overlap_s": limits.ENDPOINT_SECRET_OVERLAP_S_MAX + 1}, "invalid_field", "overlap_s"),
        ({"overlap_s": "1"}, "invalid_field", "overlap_s"),
        ({"other": 1}, "unknown_field", "other"),
    ],
)
def test_a_bad_rotation_is_refused(body: dict[str, Any], code: str, field: str) -> None:
    manager = world()
    id = new_endpoint(manager)["id"]
    problem = refused(manager.post(f"/v1/endpoints/{id}/secrets", body), 400, code)
    assert problem["position"] == {"field": field}
    assert len(valid(manager, id)) == 1


def test_secrets_are_those_of_the_clients_own_endpoints() -> None:
    world()
    theirs = new_endpoint(caller_with("listen:*", client_name="them"))["id"]
    mine = caller_with("listen:*", client_name="me")
    path = f"/v1/endpoints/{theirs}/secrets"
    for answer in (mine.get(path), mine.post(path), mine.delete(f"{path}/1")):
        refused(answer, 404, "unknown_endpoint")


def test_a_key_that_may_not_read_the_endpoints_events_cannot_rotate() -> None:
    manager = world()
    id = new_endpoint(manager)["id"]
    made(manager, {**ORDER, "endpoint": id})
    narrow = caller_with("listen:returns")
    refused(narrow.post(f"/v1/endpoints/{id}/secrets"), 403, "forbidden")
    assert len(valid(manager, id)) == 1


def test_the_secrets_of_a_deleted_endpoint_are_erased() -> None:
    manager = world()
    leaving = caller_with("listen:*", client_name="leaving")
    kept = new_endpoint(manager)["id"]
    for caller in (manager, leaving):
        id = new_endpoint(caller, signature="both")["id"]
        rotate(caller, id)
        assert rows("SELECT count(*) FROM endpoint_secrets WHERE endpoint_id = %s", id) == [(3,)]
        if caller is manager:
            assert manager.delete(f"/v1/endpoints/{id}").status_code == 204
        else:
            assert manager.delete("/v1/clients/leaving").status_code == 204
        assert rows("SELECT count(*) FROM endpoint_secrets WHERE endpoint_id = %s", id) == [(0,)]
        [(left,)] = rows("SELECT secret FROM endpoints WHERE id = %s", id)
        assert bytes(left) == b""
    assert len(valid(manager, kept)) == 1


def test_an_endpoint_of_a_process_of_the_release_before_is_rotated() -> None:
    """Such a process writes `endpoints.secret` alone."""
    manager = world()
    found = new_endpoint(manager)
    id = found["id"]
    rows("DELETE FROM endpoint_secrets RETURNING 1")
    rotate(manager, id)
    [old, _] = valid(manager, id)
    assert old["expires_at"] is not None
    [(sealed,)] = rows("SELECT sealed FROM endpoint_secrets WHERE id = %s", old["id"])
    assert secrets.secret_text(keyring().unseal(bytes(sealed))) == found["secret"]
