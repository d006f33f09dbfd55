"""Which heads of emit requests are remembered, and which later requests have one of them."""

from typing import Any, cast

import pytest

from eventhub.base import limits
from eventhub.http.app import Router
from eventhub.http.quick_emits import KnownHead, QuickEmits
from eventhub.http.routes import HTTP_ROUTES
from eventhub.http.tracing import Tracer

USUAL = (
    "Host: hub",
    "Authorization: Bearer key",
    "Content-Type: application/json",
    "Content-Length: 2",
)
LINE = "POST /v1/streams/orders/events HTTP/1.1"
NO_SERVICES: Any = None  # a head alone needs none


def request(*headers: str, line: str = LINE, body: bytes = b"{}") -> bytes:
    return "\r\n".join((line, *headers, "", "")).encode() + body


def known(data: bytes) -> KnownHead | None:
    """Return the head of a request, which the server has parsed."""
    first, *lines = data.partition(b"\r\n\r\n")[0].split(b"\r\n")
    method, target, version = first.decode().split(" ")
    path, _, query = target.partition("?")
    pairs = [line.split(b":", 1) for line in lines]
    scope = {
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "http_version": version.removeprefix("HTTP/"),
        "headers": [(name.lower(), value.strip()) for name, value in pairs],
    }
    router = Router(NO_SERVICES, HTTP_ROUTES, NO_SERVICES)
    return QuickEmits(router, Tracer(NO_SERVICES)).known(scope, data)


def usual() -> KnownHead:
    return cast("KnownHead", known(request(*USUAL)))


def test_a_usual_head_is_known() -> None:
    head = usual().head
    assert (head.stream, head.credential) == ("orders", "key")
    assert (head.content_type, head.idempotency_key) == ("application/json", "")
    assert known(request(*USUAL, "Accept: */*", "Connection: Keep-Alive", "User-Agent: x"))
    assert known(request(*USUAL[:3], "content-length:2"))


@pytest.mark.parametrize(
    "headers",
    [
        *(USUAL[:3], USUAL[:1] + USUAL[2:], (*USUAL, USUAL[1]), (*USUAL, USUAL[3])),
        *((*USUAL, more) for more in ("Connection: close", "Expect: 100-continue", "Origin: o")),
        *(
            (*USUAL, more)
            for more in ("Idempotency-Key: k", "EventHub-Session: s", "X-Request-Id: r")
        ),
        *(
            (*USUAL, more)
            for more in ("Transfer-Encoding: chunked", "ce-id: 1", "Forwarded: for=a")
        ),
    ],
)
def test_a_head_with_other_headers_is_not(headers: tuple[str, ...]) -> None:
    assert known(request(*headers)) is None


@pytest.mark.parametrize(
    "line",
    [
        "GET /v1/streams/orders/events HTTP/1.1",
        "POST /v1/streams/orders/events HTTP/1.0",
        "POST /v1/streams/orders/events?dry=1 HTTP/1.1",
        "POST /v1/streams/orders HTTP/1.1",
        "POST /v1/registrations HTTP/1.1",
    ],
)
def test_a_head_of_another_request_is_not(line: str) -> None:
    assert known(request(*USUAL, line=line)) is None


@pytest.mark.parametrize("body", [b"", b"{}", b"{" + b" " * 70_000 + b"}"])
def test_a_request_with_the_head_may_have_a_body_of_another_length(body: bytes) -> None:
    data = request(*USUAL[:3], f"Content-Length: {len(body)}", body=body)
    assert usual().body_of(data) == body


@pytest.mark.parametrize(
    "data",
    [
        b"",
        request(*USUAL)[:-1],
        request(*USUAL) + b"P",
        request(*USUAL) * 2,
        request(*USUAL[:1], "Authorization: Bearer kex", *USUAL[2:]),
        request(*USUAL[:3], "Content-Length: +2"),
        request(*USUAL[:3], "Content-Length: 0x2"),
        request(*USUAL[:3], "Content-Length: "),
        request(*USUAL[:3], "Content-Length: 2", "Accept: a"),
        request(*USUAL[:3], "Content-Length: 0000000002"),
        request(*USUAL, line=LINE.replace("orders", "orderz")),
    ],
)
def test_a_request_that_differs_takes_the_usual_way(data: bytes) -> None:
    assert usual().body_of(data) is None


def test_a_body_that_is_too_long_takes_the_usual_way() -> None:
    size = limits.BODY_BYTES_MAX + 1
    data = request(*USUAL[:3], f"Content-Length: {size}", body=b" " * size)
    assert usual().body_of(data) is None
