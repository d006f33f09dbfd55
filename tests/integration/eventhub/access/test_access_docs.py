"""The OpenAPI document and its pages: complete, self-made, and true to the routes."""

import re
from typing import Any

import pytest
from django.test import Client
from jsonschema_rs import meta

from eventhub.http.routes import HTTP_ROUTES
from eventhub.web import openapi
from tests.integration.eventhub.access.test_access_hostile import routes

METHODS = ("get", "post", "put", "patch", "delete")


def test_every_route_is_in_one_valid_document() -> None:
    from openapi_spec_validator import OpenAPIV31SpecValidator  # half a second in each process

    response = Client().get("/docs/openapi.json")
    assert (response.status_code, response["Content-Type"]) == (200, "application/json")
    document = response.json()
    assert [str(error) for error in OpenAPIV31SpecValidator(document).iter_errors()] == []
    paths = set(document["paths"])
    assert {re.sub(r"<(?:str|path|key|name):(\w+)>", r"{\1}", route) for route in routes()} <= paths
    for route in HTTP_ROUTES:
        assert route.method.lower() in document["paths"][route.path]


def test_two_schemas_of_one_name_are_refused() -> None:
    others = {"Cursor": {"properties": {"place": {}}}}
    with pytest.raises(RuntimeError, match="Cursor"):
        openapi.add_routes({"paths": {}, "components": {"schemas": others}}, None, None, True)  # type: ignore[arg-type]


def test_every_operation_states_its_errors_and_every_reference_exists() -> None:
    document = openapi.document()
    codes = {error.code for error in openapi.all_errors()}
    for path, item in document["paths"].items():
        for method in METHODS:
            answers = item.get(method, {}).get("responses", {})
            described = {
                str(status): answer.get("description", "") for status, answer in answers.items()
            }
            if method in item and path.startswith("/v1"):
                assert any(status.startswith("4") for status in described), (method, path)
                assert any(status.startswith("503") for status in described), (method, path)
            for code in re.findall(r"`(\w+)`", " ".join(described.values())):
                assert code in codes, (method, path, code)
    for name in set(re.findall(r"#/components/schemas/(\w+)", str(document))):
        assert name in document["components"]["schemas"], name


def test_the_document_is_of_version_3_1_throughout() -> None:
    """3.0's `nullable` says nothing in 3.1, so that a generated client took null for a mistake."""
    document = openapi.document()
    assert document["openapi"].startswith("3.1")
    assert document["servers"] and document["info"]["license"]
    assert "nullable" not in keys_of(document)
    for schema in document["components"]["schemas"].values():
        meta.validate(schema)
    for path, item in document["paths"].items():
        for method in item.keys() & set(METHODS):
            assert "security" in item[method], (method, path)


def keys_of(value: Any) -> set[str]:
    """Return the names of all objects in it."""
    if isinstance(value, dict):
        return set(map(str, value)).union(*map(keys_of, value.values()))
    return set().union(*map(keys_of, value)) if isinstance(value, list) else set()


def test_operation_ids_are_unique() -> None:
    found = [
        item[method]["operationId"]
        for item in openapi.document()["paths"].values()
        for method in METHODS
        if method in item
    ]
    assert len(found) == len(set(found))


def test_the_pages_load_nothing_from_elsewhere() -> None:
    for path in ("/docs/api", "/docs/errors"):
        response = Client().get(path)
        assert response.status_code == 200
        text = response.content.decode()
        assert text.startswith("<!doctype html>")
        assert "<script" not in text
        assert not re.search(r"(src|href)=\"(https?:)?//", text)
        assert Client().post(path).status_code == 405


def test_every_error_has_its_anchor_and_says_what_to_do() -> None:
    text = Client().get("/docs/errors").content.decode()
    for error in openapi.all_errors():
        assert f'id="{error.code}"' in text
        assert error.__doc__, error
    codes = [error.code for error in openapi.all_errors()]
    assert len(codes) == len(set(codes))
