"""Secrets of endpoints are nowhere to be read: not in a table, a log, an answer or an event."""

import base64
import json
from functools import partial
from typing import Any

from tests.acceptance.delivery.test_deliveries import finished
from tests.certificates import Authority
from tests.integration.forward_world import eventually
from tests.live import LiveHub, LiveZone
from tests.sink import Called, Sink

MARK = "sesame-7c1f9e"
SIGNING = [f"{MARK}-signing-{n}".ljust(32, "=").encode() for n in (1, 2)]
AUTHORITY = Authority("the tests")
CERTIFICATE, KEY = AUTHORITY.issue("hub.example")
HEADERS = {"x-api-key": f"{MARK}-header"}
BASIC = {"type": "basic", "username": "hub", "password": f"{MARK}-password"}
BEARER = {"type": "bearer", "token": f"{MARK}-bearer"}
TABLES = """
SELECT c.oid::regclass::text FROM pg_class c
 WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
"""


def echo(called: Called) -> tuple[int, dict[str, str]]:
    """Answer with what was sent, as receivers do that help to find mistakes."""
    sent = json.dumps({name: called.headers.get(name) for name in ("authorization", "x-api-key")})
    return 500, {"x-received": sent}


def text(secret: bytes) -> str:
    return f"whsec_{base64.b64encode(secret).decode()}"


def planted() -> list[str]:
    """Return the secrets in every form that they take on the way."""
    pair = base64.b64encode(f"hub:{MARK}-password".encode()).decode()
    lines = KEY.splitlines()[1:-1]
    keys = [base64.b64encode(secret).decode() for secret in SIGNING]
    plain = [MARK, pair, *lines, *keys]
    return [*plain, *(one.encode().hex() for one in plain)]


def create(zone: LiveZone, sink: Sink, kind: str, authentication: Any) -> int:
    """Create an endpoint with secrets of every kind, rotate one, and let it fail once."""
    hub, key = zone.hub, zone.admin
    made = zone.endpoint(
        sink.url(f"/{kind}"),
        secret=text(SIGNING[0]),
        signature="both",
        headers=HEADERS,
        authentication=authentication,
        tls={"certificate": CERTIFICATE, "private_key": KEY, "ca": AUTHORITY.pem},
    )
    id: int = made["id"]
    rotated = hub.call("POST", f"/v1/endpoints/{id}/secrets", {"secret": text(SIGNING[1])}, key=key)
    assert rotated.status == 201, rotated
    zone.register({"streams": ["orders"], "endpoint": id})
    return id


def attempted(hub: LiveHub, endpoint: int) -> bool:
    query = "SELECT count(*) FROM attempts WHERE endpoint_id = %s"
    return hub.sql(query, endpoint) > [(0,)]


def tables(hub: LiveHub, since: int) -> str:
    """Return every row of every table that was written in or after a transaction, as text."""
    found = []
    for (table,) in hub.sql(TABLES):
        written = f"SELECT t::text FROM {table} t WHERE t.xmin::text::bigint >= %s"
        found += [f"{table}: {row[0]}" for row in hub.sql(written, since)]
    return "\n".join(found)


def test_no_secret_is_stored_logged_or_answered(zone: LiveZone, sink: Sink) -> None:
    hub, key = zone.hub, zone.admin
    [(began,)] = hub.sql("SELECT pg_current_xact_id()::text::bigint")
    zone.create_stream("orders")
    sink.answer = echo
    oauth2 = {
        "type": "oauth2_client_credentials",
        "token_url": sink.url("/token"),
        "client_id": "hub",
        "client_secret": f"{MARK}-client",
    }
    kinds = {"basic": BASIC, "bearer": BEARER, "oauth2": oauth2}
    ids = [create(zone, sink, kind, value) for kind, value in kinds.items()]
    zone.emit("orders", {"domain": "shop", "type": "placed"})
    sink.wait(1, "/basic")
    sink.wait(1, "/bearer")
    sink.wait(1, "/token")
    assert sink.at("/basic")[0].headers["x-api-key"] == HEADERS["x-api-key"]
    assert sink.at("/bearer")[0].headers["authorization"] == f"Bearer {BEARER['token']}"
    answers = [hub.call("GET", "/v1/endpoints", key=key)]
    for id in ids:
        path = f"/v1/endpoints/{id}"
        eventually(partial(attempted, hub, id), f"an attempt at endpoint {id}")
        [pending] = finished(hub, key, id, 1, "pending")
        answers += [
            hub.call("GET", f"/v1/deliveries/{pending['id']}", key=key),
            hub.call("PATCH", path, {"description": "again"}, key=key),
            hub.call("GET", path, key=key),
            hub.call("GET", f"{path}/secrets", key=key),
            hub.call("PATCH", path, {"headers": {"bad name": f"{MARK}-bad"}}, key=key),
            hub.call("PATCH", path, {"authentication": {**BEARER, "token": f"{MARK} "}}, key=key),
        ]
    logs = [process.log() for process in (*hub.web, *hub.forwarders, *hub.workers)]
    shown = "\n".join([str(answer) for answer in answers] + logs + [tables(hub, began)])
    assert "(hidden)" in shown
    assert "x-received" in shown
    assert len(shown.split("endpoints: ")) > len(ids)
    assert [one for one in planted() if one in shown] == []
    delivered = sink.at("/basic")[0]
    assert delivered.verified(text(SIGNING[0]))
    assert delivered.verified(text(SIGNING[1]))
