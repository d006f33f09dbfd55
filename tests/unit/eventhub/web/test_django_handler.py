"""Django's part of a web process: one change of threads for a request."""

import asyncio
import threading
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.test import override_settings
from django.urls import path
from django.utils.deprecation import MiddlewareMixin

from eventhub.web.django_handler import OneThreadHandler

seen: list[Any] = []


class Probe(MiddlewareMixin):  # type: ignore[misc]
    """Notes whether the handler behind it is asynchronous, and its thread."""

    def __init__(self, get_response: Any) -> None:
        seen.append(asyncio.iscoroutinefunction(get_response))
        super().__init__(get_response)

    def process_request(self, request: HttpRequest) -> None:
        seen.append(threading.get_ident())


def view(request: HttpRequest) -> HttpResponse:
    seen.append(threading.get_ident())
    if "fail" in request.GET:
        raise ValueError("a mistake")
    return HttpResponse(request.body)


urlpatterns = [path("seen", view)]


async def answered(query: bytes) -> list[Any]:
    """Return the messages of an answer to POST /seen."""
    scope = {"type": "http", "method": "POST", "path": "/seen", "query_string": query,
             "headers": [(b"host", b"localhost")], "server": ("localhost", 80)}  # fmt: skip
    sent: list[Any] = []
    received = [{"type": "http.request", "body": b"text"}]

    async def receive() -> Any:
        return received.pop() if received else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    await OneThreadHandler()(scope, receive, send)
    return sent


async def test_middleware_and_view_run_together_in_another_thread() -> None:
    seen.clear()
    with override_settings(MIDDLEWARE=[f"{__name__}.Probe"] * 2, ROOT_URLCONF=__name__):
        start, *bodies = await answered(b"")
    assert (start["status"], b"".join(each["body"] for each in bodies)) == (200, b"text")
    assert seen[:2] == [False, False], "Django passes between threads for each middleware"
    assert len(set(seen[2:])) == 1
    assert seen[2] != threading.get_ident()


async def test_an_error_of_a_view_is_an_answer() -> None:
    with override_settings(MIDDLEWARE=[], ROOT_URLCONF=__name__, DEBUG=False):
        start, *_ = await answered(b"fail=1")
    assert start["status"] == 500
