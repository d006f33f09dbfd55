"""Sources of a running hub: what providers post is verified, and in the stream once."""

import base64
import hashlib
import json
import time
from typing import Any

import pytest

from eventhub.demo.github import read_payloads
from registrations.sources.verification import base64_hmac, hex_hmac
from tests.acceptance.eventhub.access.test_tenant_limits import set_quotas
from tests.live import Answer, LiveHub, LiveZone, call

FORM = "application/x-www-form-urlencoded"
SECRET = "It's a Secret to Everybody"  # of GitHub's documented example


def create(zone: LiveZone, provider: str, *, key: str = "", **fields: Any) -> dict[str, Any]:
    body = {"name": provider, "stream": "hooks", "provider": provider, **fields}
    answer = zone.hub.call("POST", "/v1/sources", body, key=key or zone.admin)
    assert answer.status == 201, answer
    created: dict[str, Any] = answer.json
    return created


def post(hub: LiveHub, path: str, body: bytes, query: str = "", **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return call(hub.url, "POST", path + query, body, headers=named)


def from_github(hub: LiveHub, path: str, body: bytes, **headers: str) -> Answer:
    given = {"X_GitHub_Event": "issues", "X_GitHub_Delivery": "d1", **headers}
    given.setdefault("X_Hub_Signature_256", "sha256=" + hex_hmac(SECRET.encode(), body))
    return post(hub, path, body, **given)


def events(zone: LiveZone) -> list[dict[str, Any]]:
    page = zone.hub.call("GET", "/v1/streams/hooks/events?from=oldest&limit=100", key=zone.admin)
    found: list[dict[str, Any]] = [one["event"] for one in page.json["events"]]
    return found


def shown(zone: LiveZone, source: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = zone.hub.call("GET", f"/v1/sources/{source['id']}", key=zone.admin).json
    return found


def samples(zone: LiveZone, source: dict[str, Any]) -> list[dict[str, Any]]:
    path = f"/v1/sources/{source['id']}/samples"
    found: list[dict[str, Any]] = zone.hub.call("GET", path, key=zone.admin).json["items"]
    return found


@pytest.fixture
def zone(hub: LiveHub) -> LiveZone:
    zone = hub.new_zone()
    zone.create_stream("hooks")
    return zone


def test_the_published_payloads_of_github_are_stored_once(hub: LiveHub, zone: LiveZone) -> None:
    source = create(zone, "github", secret=SECRET)
    payloads = read_payloads()[:25] or pytest.skip("needs `make payloads`")
    for number, payload in enumerate(payloads * 2):
        body = json.dumps(payload.content, indent=1).encode()
        delivery = f"delivery-{number % len(payloads)}"
        answer = from_github(
            hub, source["path"], body, X_GitHub_Event=payload.name, X_GitHub_Delivery=delivery
        )
        expected = "stored" if number < len(payloads) else "repeated"
        assert (answer.status, answer.json) == (200, {"outcome": expected}), answer
    found = events(zone)
    assert [one["id"] for one in found] == [f"delivery-{n}" for n in range(len(payloads))]
    for event, payload in zip(found, payloads, strict=True):
        action = payload.content.get("action")
        assert event["type"] == ".".join(filter(None, (payload.name, action)))
        assert event["body"] == payload.content
        assert (event["domain"], event["node"], event["source"]) == ("GitHub", "github", "tester")
    counts = {"stored": 25, "repeated": 25, "answered": 0, "failed": 0, "refused": 0}
    assert shown(zone, source)["requests"] == counts
    assert len(samples(zone, source)) == 20


@pytest.mark.parametrize(
    ("body", "headers", "reason"),
    [
        (b'{"a": 2}', {}, "wrong_signature"),
        (b'{"a": 1}', {"X_Hub_Signature_256": "sha256=" + "0" * 64}, "wrong_signature"),
        (b'{"a": 1}', {"X_Hub_Signature_256": ""}, "missing_signature"),
    ],
)
def test_a_request_that_is_tampered_with_is_refused_and_listed_without_its_body(
    hub: LiveHub, zone: LiveZone, body: bytes, headers: dict[str, str], reason: str
) -> None:
    source = create(zone, "github", secret=SECRET)
    good = {"X_Hub_Signature_256": "sha256=" + hex_hmac(SECRET.encode(), b'{"a": 1}')}
    refused = {**good, **headers, "Authorization": "Bearer sesame"}
    problem = from_github(hub, source["path"], body, **refused).refused(401, "unverified_delivery")
    assert problem["reason"] == reason
    assert events(zone) == []
    assert from_github(hub, source["path"], b'{"a": 1}', **good).status == 200
    [stored, sample] = samples(zone, source)
    assert (stored["outcome"], stored["sequence"]) == ("stored", 1)
    assert (sample["outcome"], sample["reason"], sample["verified"]) == ("refused", reason, False)
    path = f"/v1/sources/{source['id']}/samples"
    whole = hub.call("GET", f"{path}/{sample['id']}", key=zone.admin).json
    assert whole["body"] is None
    assert whole["headers"]["authorization"] == "(not shown)"
    whole = hub.call("GET", f"{path}/{stored['id']}", key=zone.admin).json
    assert whole["body"] == '{"a": 1}'
    assert whole["headers"]["x-github-event"] == "issues"
    assert shown(zone, source)["requests"]["refused"] == 1


def test_challenges_are_answered_as_providers_want_and_store_nothing(
    hub: LiveHub, zone: LiveZone
) -> None:
    github = create(zone, "github", secret=SECRET)
    answer = from_github(hub, github["path"], b'{"zen": "x"}', X_GitHub_Event="ping")
    assert (answer.status, answer.json) == (200, {"answered": "ping"})
    slack = create(zone, "slack", secret="slack secret")
    body = b'{"token": "t", "challenge": "3eZbrw1aB", "type": "url_verification"}'
    assert from_slack(hub, slack["path"], body).json == {"challenge": "3eZbrw1aB"}
    assert events(zone) == []
    assert shown(zone, slack)["requests"]["answered"] == 1


def from_slack(hub: LiveHub, path: str, body: bytes, *, late_s: int = 0) -> Answer:
    stamp = str(int(time.time()) - late_s)
    signature = "v0=" + hex_hmac(b"slack secret", f"v0:{stamp}:".encode() + body)
    headers = {"X_Slack_Request_Timestamp": stamp, "X_Slack_Signature": signature}
    return post(hub, path, body, **headers)


def test_each_provider_is_answered_in_its_form(hub: LiveHub, zone: LiveZone) -> None:
    body = b'{"type": "event_callback", "event_id": "Ev1", "event": {"type": "message"}}'
    slack = create(zone, "slack", secret="slack secret")
    answer = from_slack(hub, slack["path"], body)
    assert (answer.status, answer.body) == (200, b"")
    problem = from_slack(hub, slack["path"], body, late_s=400).refused(401, "unverified_delivery")
    assert problem["reason"] == "outside_tolerance"

    twilio = create(zone, "twilio", secret="12345")
    fields = "CallSidCA1CallStatuscompletedFrom+14158675309"
    signature = base64_hmac(b"12345", f"{hub.url}{twilio['path']}?a=1{fields}".encode(), "sha1")
    body = b"CallStatus=completed&CallSid=CA1&From=%2B14158675309"
    headers = {"Content_Type": FORM, "X_Twilio_Signature": signature}
    answer = post(hub, twilio["path"], body, "?a=1", **headers)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/xml"), answer
    assert answer.body == b"<Response></Response>"

    shopify = create(zone, "shopify", secret="hush")
    body = b'{"id": 820982911946154508}'
    headers = {
        "X_Shopify_Topic": "orders/create",
        "X_Shopify_Hmac_SHA256": base64_hmac(b"hush", body),
        "X_Shopify_Triggered_At": "2026-03-01T12:00:00.123456789Z",
    }
    assert post(hub, shopify["path"], body, **headers).status == 200

    basic = create(zone, "basic", secret="user:password")
    credential = base64.b64encode(b"user:password").decode()
    assert post(hub, basic["path"], b"{}", Authorization=f"Basic {credential}").status == 200
    refused = post(hub, basic["path"], b"{}")
    assert refused.headers["www-authenticate"].startswith("Basic "), refused

    options = {"name": "key", "location": "query"}
    keyed = create(zone, "api-key", secret="s/1", options=options)
    assert post(hub, keyed["path"], b"", "?key=s%2F1&x=2").status == 200
    whole = samples(zone, keyed)[0]["id"]
    path = f"/v1/sources/{keyed['id']}/samples/{whole}"
    assert hub.call("GET", path, key=zone.admin).json["query"] == "key=%28not+shown%29&x=2"

    types = [(one["domain"], one["type"]) for one in events(zone)]
    assert types == [
        ("Slack", "event_callback.message"),
        ("Twilio", "webhook.completed"),
        ("Shopify", "orders/create"),
        ("Webhook", "received"),
        ("Webhook", "received"),
    ]


def test_a_map_decides_on_the_event_and_the_bench_tries_another_one(
    hub: LiveHub, zone: LiveZone
) -> None:
    mapping = {
        "domain": {"value": "shop"},
        "type": {"join": [{"value": "order"}, {"body": "/state"}]},
        "key": {"body": "/order/number"},
        "id": {"query": "id"},
        "attributes": {"total": {"body": "/order/total"}, "test": {"query": "test", "default": 0}},
    }
    options = {"header": "X-Sign", "encoding": "base64", "algorithm": "sha512", "prefix": "v7="}
    source = create(zone, "hmac", secret="k", options=options, mapping=mapping)

    def send(body: bytes) -> Answer:
        sign = "v7=" + base64_hmac(b"k", body, "sha512")
        return post(hub, source["path"], body, "?id=o-1", X_Sign=sign)

    body = b'{"state": "paid",  "order": {"number": 7, "total": 12.5}}'
    assert [send(body).json["outcome"] for _ in range(2)] == ["stored", "repeated"]
    [event] = events(zone)
    assert event["attributes"] == {"total": 12.5, "test": 0}
    names = ("domain", "type", "key", "id")
    assert [event[name] for name in names] == ["shop", "order.paid", "7", "o-1"]
    problem = send(b'{"order": {"number": {}}}').refused(422, "unmapped_delivery")
    assert problem["position"] == {"field": "key"}

    bench = f"/v1/sources/{source['id']}/test"
    sample = samples(zone, source)[-1]["id"]
    tried = hub.call("POST", bench, {"sample": sample}, key=zone.admin).json["event"]
    assert (tried["type"], tried["attributes"]) == ("order.paid", {"total": 12.5, "test": 0})
    assert tried["body"] == body.decode()
    other = {"mapping": {"type": {"body": "/order/total"}}, "body": body.decode()}
    assert hub.call("POST", bench, other, key=zone.admin).json["event"]["type"] == "12.5"
    wrong = {"mapping": {"type": {"body": "/none"}}, "sample": sample}
    hub.call("POST", bench, wrong, key=zone.admin).refused(422, "unmapped_delivery")
    assert len(events(zone)) == 1

    changed = {"mapping": {**mapping, "type": {"value": "any"}, "key": {"value": "k"}}}
    path = f"/v1/sources/{source['id']}"
    assert hub.call("PATCH", path, changed, key=zone.admin).json["mapping"] == changed["mapping"]
    assert send(b'{"order": []}').json == {"outcome": "repeated"}  # of the same id


def test_two_secrets_and_two_urls_are_valid_while_they_are_replaced(
    hub: LiveHub, zone: LiveZone
) -> None:
    source = create(zone, "github", secret=SECRET)
    path = f"/v1/sources/{source['id']}"
    number = 0

    def status(secret: str, url: str) -> int:
        nonlocal number
        number += 1
        signature = "sha256=" + hex_hmac(secret.encode(), b"{}")
        delivery = f"n{number}"
        headers = {"X_Hub_Signature_256": signature, "X_GitHub_Delivery": delivery}
        return from_github(hub, url, b"{}", **headers).status

    replaced = hub.call("POST", f"{path}/secrets", {}, key=zone.admin).json
    assert [status(one, source["path"]) for one in (SECRET, replaced["secret"])] == [200, 200]
    assert replaced["former_secret_expires_at"] is not None
    third = hub.call("POST", f"{path}/secrets", {"secret": "third"}, key=zone.admin).json
    assert third["secret"] is None
    found = [status(one, source["path"]) for one in (SECRET, replaced["secret"], "third")]
    assert found == [401, 200, 200]
    last = {"secret": "last", "overlap_s": 0}
    hub.call("POST", f"{path}/secrets", last, key=zone.admin)
    assert [status(one, source["path"]) for one in ("third", "last")] == [401, 200]

    moved = hub.call("POST", f"{path}/url", {}, key=zone.admin).json
    assert [status("last", url) for url in (source["path"], moved["path"])] == [200, 200]
    again = hub.call("POST", f"{path}/url", {"overlap_s": 0}, key=zone.admin).json
    urls = (source["path"], moved["path"], again["path"])
    assert [status("last", url) for url in urls] == [404, 404, 200]

    assert hub.call("PATCH", path, {"enabled": False}, key=zone.admin).status == 200
    assert status("last", again["path"]) == 409
    assert hub.call("DELETE", path, key=zone.admin).status == 204
    assert status("last", again["path"]) == 404


def test_secrets_and_tokens_are_not_in_the_database_and_not_shown_again(
    hub: LiveHub, zone: LiveZone
) -> None:
    source = create(zone, "standard-webhooks")
    token = source["path"].removeprefix("/v1/webhooks/")
    for path in ("/v1/sources", f"/v1/sources/{source['id']}"):
        text = hub.call("GET", path, key=zone.admin).body.decode()
        assert source["secret"] not in text
        assert token not in text
    rows = hub.sql("SELECT s::text, k::text FROM sources s JOIN source_secrets k"
                   " ON k.source_id = s.id WHERE s.id = %s", source["id"])  # fmt: skip
    assert len(rows) == 1
    for secret in (source["secret"], token):
        assert secret not in str(rows)
        assert secret.encode().hex() not in str(rows)
    assert hashlib.sha256(token.encode()).hexdigest() in str(rows)


def test_the_quota_and_the_types_of_a_zone_count_for_sources(hub: LiveHub, zone: LiveZone) -> None:
    source = create(zone, "github", secret=SECRET)
    schema = {"schema": {"required": ["repository"]}}
    assert hub.call("PUT", "/v1/types/GitHub/issues", schema, key=zone.admin).status == 201
    problem = from_github(hub, source["path"], b"{}").refused(422, "type_violation")
    assert problem["position"].keys() == {"field"}
    [sample] = samples(zone, source)
    assert (sample["outcome"], sample["reason"]) == ("failed", "type_violation")
    body = b'{"repository": {"full_name": "a/b"}}'
    assert from_github(hub, source["path"], body).status == 200
    set_quotas(zone, "tester", events_per_s=1)
    until_s = time.monotonic() + 60
    while (answer := from_github(hub, source["path"], body)).status == 200:
        assert time.monotonic() < until_s
    assert answer.refused(429, "rate_limited")["scope"] == "client"
    assert "retry-after" in answer.headers


def test_changes_are_announced_and_sources_end_with_their_client(
    hub: LiveHub, zone: LiveZone
) -> None:
    key = zone.key("emit:*", client="shop")
    source = create(zone, "github", secret=SECRET, key=key)
    assert from_github(hub, source["path"], b"{}").status == 200
    taken = {"name": "github", "stream": "hooks", "provider": "github"}
    hub.call("POST", "/v1/sources", taken, key=key).refused(409, "source_exists")
    assert hub.call("DELETE", "/v1/clients/shop", key=zone.admin).status == 204
    from_github(hub, source["path"], b"{}").refused(404, "unknown_source")
    for table in ("source_secrets", "source_samples", "source_counts"):
        query = f"SELECT count(*) FROM {table} WHERE source_id = %s"
        assert hub.sql(query, source["id"]) == [(0,)]
    page = hub.call("GET", "/v1/audit?type=source.*", key=zone.admin).json["items"]
    assert [one["type"] for one in page] == ["source.deleted", "source.created"], page
