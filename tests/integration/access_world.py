"""Zones, clients and keys for the tests of the management API, and a caller of it."""

import json
from typing import Any

from django.http import HttpResponse
from django.test import Client as HttpClient

import eventhub.urls  # noqa: F401 - not in a test's transaction: it takes seconds where all is busy
from eventhub.access import selectors
from eventhub.access.grants import Grant
from eventhub.access.models import Client, Zone
from eventhub.access.principal import Actor
from eventhub.accounts import keys, services

EVERYTHING = ("emit:*", "listen:*", "manage:*")


def grants_of(*texts: str) -> tuple[Grant, ...]:
    return tuple(Grant(*text.split(":", 1)) for text in texts)


class ApiCaller:
    """Calls the API with a key, as an operator's browser, or without credentials."""

    def __init__(self, key: str = "", http: HttpClient | None = None) -> None:
        self.http = http or HttpClient()
        self.key = key

    def call(self, method: str, path: str, body: Any = None, **more: Any) -> HttpResponse:
        headers = dict(more.pop("headers", {}))
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body)
        more.setdefault("content_type", "application/json")
        return self.http.generic(method, path, data, headers=headers, **more)

    def get(self, path: str, **more: Any) -> HttpResponse:
        return self.call("GET", path, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> HttpResponse:
        return self.call("POST", path, body, **more)

    def put(self, path: str, body: Any = None, **more: Any) -> HttpResponse:
        return self.call("PUT", path, body, **more)

    def patch(self, path: str, body: Any = None, **more: Any) -> HttpResponse:
        return self.call("PATCH", path, body, **more)

    def delete(self, path: str, **more: Any) -> HttpResponse:
        return self.call("DELETE", path, **more)


def zone(name: str) -> Zone:
    return Zone.objects.filter(name=name).first() or services.create_zone(name=name)


def client(zone_name: str, name: str) -> Client:
    home = zone(zone_name)
    found = selectors.live_clients(zone_id=home.pk).filter(name=name).first()
    return found or services.create_client(zone_id=home.pk, name=name)


def key(*grants: str, zone_name: str = "default", client_name: str = "tester", **terms: Any) -> str:
    """Issue a key as an operator, and return its text."""
    owner = client(zone_name, client_name)
    home = selectors.find_zone(name=zone_name)
    issued = keys.issue_key(
        actor=Actor(home.pk, home.name, None),
        client=owner,
        grants=grants_of(*grants),
        terms=keys.KeyTerms(**terms),
    )
    return issued.text


def caller_with(*grants: str, **more: Any) -> ApiCaller:
    return ApiCaller(key(*grants, **more))


def public_id(text: str) -> str:
    return text.split("_")[1]


def refused(response: HttpResponse, status: int, code: str) -> dict[str, Any]:
    """Return the problem document of a refusal, after checking its form."""
    assert response["Content-Type"] == "application/problem+json", response.content
    problem: dict[str, Any] = json.loads(response.content)
    assert (response.status_code, problem["code"]) == (status, code), problem
    assert problem["status"] == status
    assert problem["detail"]
    assert isinstance(problem["position"], dict)
    return problem
