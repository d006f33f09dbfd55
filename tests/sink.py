"""A receiver of callbacks for tests: a plain HTTP listener on loopback that records its requests.

It verifies nothing by itself; `Called.verified(secret)` does, with the client library.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from eventhub_client.callbacks import verify

WAIT_S = 30.0


class Called(NamedTuple):
    """One request as received."""

    path: str
    headers: dict[str, str]  # lower-case names
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def verified(self, secret: str) -> bool:
        """Return True; raise UnverifiedCallback if the signature is not by this secret."""
        return verify(secret, self.headers, self.body) == self.id


Answer = Callable[[Called], tuple[int, dict[str, str]]]  # status and headers


def thanks(_called: Called) -> tuple[int, dict[str, str]]:
    return 204, {}


def nothing(_called: Called) -> bytes:
    return b""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # connections to accept; what does not fit is tried again after 1 s


class Sink:
    """A receiver. `url("/a")` is the URL for endpoints; `answer`, and `body` of the answers, may be
    replaced at any time.
    """

    def __init__(self) -> None:
        self.called: list[Called] = []
        self.answer: Answer = thanks
        self.body: Callable[[Called], bytes] = nothing
        self._changed = threading.Condition()
        sink = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", "0")))
                headers = {name.lower(): value for name, value in self.headers.items()}
                called = Called(self.path, headers, body)
                status, more = sink._take(called)
                answer = sink.body(called)
                self.send_response(status)
                for name, value in {"content-length": str(len(answer)), **more}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_args: object) -> None:
                pass

        self._server = _Server(("127.0.0.1", 0), Handler)

    def url(self, path: str = "/") -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}{path}"

    def at(self, path: str) -> list[Called]:
        """Return the requests to one path, in the order of their arrival."""
        return [called for called in list(self.called) if called.path == path]

    def wait(self, count: int, path: str = "/", *, timeout_s: float = WAIT_S) -> list[Called]:
        """Wait for at least this many requests to a path."""
        until = time.monotonic() + timeout_s
        with self._changed:
            while len(found := self.at(path)) < count:
                left = until - time.monotonic()
                assert left > 0, f"{len(found)} of {count} callbacks to {path} in {timeout_s} s"
                self._changed.wait(left)
        return found

    def _take(self, called: Called) -> tuple[int, dict[str, str]]:
        with self._changed:
            self.called.append(called)
            self._changed.notify_all()
        return self.answer(called)

    @contextmanager
    def serving(self) -> Iterator["Sink"]:
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()
