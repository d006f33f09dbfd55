"""The back office at /admin/: superusers look at what is stored, and nobody changes anything."""

import html
import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.urls import URLPattern, get_resolver

from eventhub.base import limits
from tests.live import Answer, LiveHub, LiveZone, live_hub

SECRET = "whsec_" + "c2VzYW1lLXNlc2FtZS1zZXNhbWUtc2VzYW1l"
ROW = re.compile(r'href="(/admin/[a-z]+/[a-z]+/[^"/]+/change/)')


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHub]:
    """Yield a hub of its own, as rows are planted in it."""
    with live_hub(tmp_path_factory.mktemp("office"), count=1) as running:
        yield running


@pytest.fixture(scope="module")
def zone(hub: LiveHub) -> Iterator[LiveZone]:
    """Create a zone with a row in most tables."""
    zone = hub.new_zone()
    zone.create_stream("orders", keyed=True)
    zone.define_channel("disk", 0)
    assert zone.emit("orders", {"domain": "shop", "type": "placed", "key": "a"}).status == 200
    body = {"url": "https://hooks.example/x", "secret": SECRET}
    endpoint = hub.call("POST", "/v1/endpoints", body, key=zone.admin).json["id"]
    group = hub.call("POST", "/v1/registration-groups", {"name": "night"}, key=zone.admin)
    assert group.status == 201
    registration = {
        "streams": ["orders"],
        "attributes": {"n": 1},
        "endpoint": endpoint,
        "group": "night",
    }
    zone.register(registration)
    path = f"/v1/registration-groups/{group.json['id']}"
    assert hub.call("PATCH", path, {"suspended": True}, key=zone.admin).status == 200
    schema = {"properties": {"n": {"type": "integer"}}}
    assert (
        hub.call("PUT", "/v1/types/shop/placed", {"schema": schema}, key=zone.admin).status == 201
    )
    assert hub.operate("POST", "/v1/jobs/audit/runs", {}).status < 300
    hub.sql(
        "INSERT INTO circuits (endpoint_id, failures, failing_since, failed_at, pause_s, retry_at,"
        " outcome, segment_id, sequence)"
        " SELECT id, 3, now(), now(), 1, now(), 'status', 1, 1 FROM endpoints"
    )
    hub.sql(
        "INSERT INTO archive_attempts (segment_id, attempts, reason, retry_at)"
        " SELECT id, 1, 'unfinished', now() FROM segments"
    )
    yield zone


def look(hub: LiveHub, path: str) -> Answer:
    """Return a page, as the operator sees it."""
    answer = hub.operate("GET", path)
    assert answer.status == 200, (path, answer.body[:500])
    assert answer.headers["content-type"].startswith("text/html")
    return answer


def lists_of(hub: LiveHub) -> list[str]:
    """Return the paths of all lists."""
    index = look(hub, "/admin/").body.decode()
    return sorted(set(re.findall(r'href="(/admin/[a-z]+/[a-z]+/)"', index)))


def test_every_list_and_the_rows_in_it_are_shown(hub: LiveHub, zone: LiveZone) -> None:
    lists = lists_of(hub)
    assert len(lists) >= 29
    shown = 0
    for path in lists:
        page = look(hub, path).body.decode()
        rows = ROW.findall(page)
        for row in rows[:1]:
            text = look(hub, row).body.decode()
            assert 'type="submit"' not in text.partition('id="content-main"')[2]
            shown += 1
        assert SECRET not in page
        assert "addlink" not in page
    assert shown >= 20
    found = look(hub, "/admin/eventlog/stream/?q=orders&durability__exact=sync").body.decode()
    assert "orders" in found


def test_secrets_are_shown_nowhere(hub: LiveHub, zone: LiveZone) -> None:
    [(endpoint, key, user)] = hub.sql(
        "SELECT (SELECT max(id) FROM endpoints), (SELECT max(id) FROM api_keys),"
        " (SELECT max(id) FROM auth_user)"
    )
    for path, hidden in (
        (f"/admin/registrations/endpoint/{endpoint}/change/", "Secret"),
        (f"/admin/access/apikey/{key}/change/", "Digest"),
        (f"/admin/auth/user/{user}/change/", "pbkdf2"),
    ):
        assert hidden not in look(hub, path).body.decode()


@pytest.mark.parametrize(
    "query",
    [
        "auth/user/?password__startswith=pbkdf2",
        "auth/user/?password__regex=^p",
        "access/apikey/?digest__isnull=0",
        "access/apikey/?digest__gt=1",
        "registrations/endpoint/?secret__gt=a",
        "registrations/registration/?client__apikey__digest__isnull=0",
    ],
)
def test_filters_on_hidden_columns_are_refused(hub: LiveHub, zone: LiveZone, query: str) -> None:
    assert hub.operate("GET", f"/admin/{query}").status == 400


def test_filters_accept_the_values_of_their_links(hub: LiveHub, zone: LiveZone) -> None:
    """Each link of each filter of each list."""
    links = 0
    for path in lists_of(hub):
        page = look(hub, path).body.decode()
        for query in re.findall(r'<li[^>]*>\s*<a href="(\?[^"]+)"', page):
            look(hub, path + html.unescape(query))
            links += 1
    assert links > 20


def test_nothing_is_changed(hub: LiveHub, zone: LiveZone) -> None:
    [(stream,)] = hub.sql("SELECT max(id) FROM streams")
    before = hub.sql("SELECT * FROM streams ORDER BY id")
    for path in ("add/", f"{stream}/delete/"):
        assert hub.operate("GET", f"/admin/eventlog/stream/{path}").status in (403, 404)
        assert hub.operate("POST", f"/admin/eventlog/stream/{path}", {}).status in (403, 404)
    change = f"/admin/eventlog/stream/{stream}/change/"
    assert hub.operate("POST", change, {"name": "x"}).status == 403
    for method in ("PUT", "PATCH", "DELETE"):
        assert hub.operate(method, change).status == 405
    assert hub.sql("SELECT * FROM streams ORDER BY id") == before


@pytest.mark.parametrize("path", ["/admin/", "/admin/auth/user/"])
def test_only_superusers_come_in(hub: LiveHub, zone: LiveZone, path: str) -> None:
    for headers in ({}, {"Cookie": "sessionid=a\\0b"}, {"Authorization": f"Bearer {zone.admin}"}):
        answer = hub.call("GET", path, headers=headers)
        assert (answer.status, answer.headers["location"]) == (302, "/console/"), answer
    hub.sql("UPDATE auth_user SET is_superuser = false WHERE username = 'operator'")
    try:
        hub.operate("GET", path).refused(403, "forbidden")
    finally:
        hub.sql("UPDATE auth_user SET is_superuser = true WHERE username = 'operator'")
    hub.operate("GET", "/admin/password_change/").refused(404, "not_found")


def test_no_page_of_it_is_shown_to_a_client(hub: LiveHub, zone: LiveZone) -> None:
    [office] = [one for one in get_resolver().url_patterns if str(one.pattern) == "admin/"]
    paths = sorted(_paths(office.url_patterns, "/admin/"))
    assert len(paths) > 100
    for path in paths:
        for method in ("GET", "POST"):
            answer = hub.call(method, path, headers={"Authorization": f"Bearer {zone.admin}"})
            assert answer.status in (302, 403, 404), (method, path, answer)
            assert zone.name not in answer.body.decode()


def _paths(patterns: Any, prefix: str) -> Iterator[str]:
    for pattern in patterns:
        path = prefix + re.sub(r"<[^>]+>", "1", str(pattern.pattern)).rstrip("$")
        if isinstance(pattern, URLPattern):
            yield path
        else:
            yield from _paths(pattern.url_patterns, path)


def test_a_page_that_takes_too_long_ends(hub: LiveHub, zone: LiveZone) -> None:
    """PostgreSQL is made slow by a lock on what is to be read."""
    with psycopg.connect(hub.database_url) as connection:
        connection.execute("LOCK TABLE zones")
        answer = hub.operate("GET", "/admin/access/zone/")
    assert answer.status == 503
    assert f"longer than {limits.BACK_OFFICE_S_MAX} s" in answer.body.decode()


def test_styles_are_served(hub: LiveHub, zone: LiveZone) -> None:
    text = look(hub, "/admin/").body.decode()
    for path in re.findall(r'(?:href|src)="(/static/[^"]+)"', text):
        assert hub.call("GET", path).status == 200, path
    assert hub.call("GET", "/static/admin/..%2f..%2f__init__.py").status == 400
