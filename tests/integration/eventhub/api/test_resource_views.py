"""The base of all views of the management API: pages by the positions of rows, serializers that are
planned once, permissions that the document repeats.
"""

import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework import serializers

from eventhub.eventlog.models import Segment
from eventhub.web import openapi
from tests.integration.access_world import EVERYTHING, caller_with, refused, zone

pytestmark = pytest.mark.django_db
PARAMETERS = {"job": "audit", "run": "1"}


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    """Return those of the management API: method, path, and what the document says."""
    return [
        (method.upper(), path, operation)
        for path, item in openapi.document()["paths"].items()
        for method, operation in item.items()
        if "hot routes" not in operation["tags"]
    ]


def test_routes_documented_for_operators_refuse_every_key() -> None:
    caller = caller_with(*EVERYTHING)
    found = 0
    for method, path, operation in operations():
        if operation["security"] != [{"operatorLogin": []}]:
            continue
        found += 1
        assert "For operators" in operation["description"]
        filled = re.sub(r"\{(\w+)\}", lambda name: PARAMETERS.get(name[1], "x"), path)
        refused(caller.call(method, filled, {} if method != "GET" else None), 403, "forbidden")
    assert found >= 10


def test_a_head_request_needs_the_permissions_of_get() -> None:
    caller = caller_with("listen:orders")
    for path in ("/v1/zones", "/v1/clients", "/v1/overview", "/v1/jobs"):
        assert caller.call("HEAD", path).status_code == 403, path
    assert caller.call("HEAD", "/v1/streams").status_code == 200


def test_every_list_has_the_same_pages() -> None:
    schemas = openapi.document()["components"]["schemas"]
    pages = set()
    for _, path, operation in operations():
        pages.update(re.findall(r"schemas/(\w+Page)'", str(operation["responses"])))
        names = {one["name"] for one in operation.get("parameters", [])}
        assert not names & {"before", "offset", "page", "cursor"}, path
    assert len(pages) >= 10
    for name in pages:
        assert schemas[name]["required"] == ["items", "next"], name


def test_a_page_continues_after_rows_with_equal_first_sequences() -> None:
    """An empty segment has the first sequence of the next one, so the place is both columns."""
    manager = caller_with(*EVERYTHING)
    assert manager.put("/v1/streams/orders", {}).status_code == 201
    [one] = Segment.objects.filter(stream__name="orders", stream__zone=zone("default"))
    for uuid in ("a", "b", "c"):
        one.pk, one.uuid, one.last = None, f"{uuid * 8}-0000-4000-8000-000000000000", 0
        one.save(force_insert=True)
    whole = manager.get("/v1/streams/orders/segments").json()
    found, after = [], ""
    while after is not None:
        page = manager.get(f"/v1/streams/orders/segments?limit=1{after and f'&after={after}'}")
        found += page.json()["items"]
        after = page.json()["next"]
    assert found == whole["items"]
    assert len(found) == 4


def test_how_long_a_list_is_costs_no_more_queries() -> None:
    manager = caller_with(*EVERYTHING)
    counts = []
    for number in range(0, 20, 10):
        for name in range(number, number + 10):
            body = {"url": f"https://hooks.example/{name}"}
            assert manager.post("/v1/endpoints", body).status_code == 201
        with CaptureQueriesContext(connection) as queries:
            assert len(manager.get("/v1/endpoints").json()["items"]) == number + 10
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_the_fields_of_a_serializer_are_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fields that were made for every item took 31 ms for a page of 50."""
    manager = caller_with(*EVERYTHING)
    manager.get("/v1/clients")
    made: list[str] = []
    usual = serializers.Field.__new__

    def noted(cls: type, *args: Any, **kwargs: Any) -> Any:
        made.append(cls.__name__)
        return usual(cls, *args, **kwargs)

    monkeypatch.setattr(serializers.Field, "__new__", noted)
    assert manager.get("/v1/clients").json()["items"]
    assert made == []


def test_the_comment_of_a_column_is_the_meaning_of_its_field() -> None:
    """A serializer of a model says nothing twice: help and defaults are the column's."""
    schemas = openapi.document()["components"]["schemas"]
    ordered = schemas["NewEndpoint"]["properties"]["ordered"]
    assert ordered["default"] is False
    assert ordered["description"] == (
        "Deliver one event of a stream, or of a key, at a time, in the stream's order."
    )
    assert "default" not in schemas["PatchedEndpointChange"]["properties"]["ordered"]
