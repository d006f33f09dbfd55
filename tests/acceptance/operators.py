"""Operators of a hub, each with a role and a login of its own."""

import secrets
from typing import Any, NamedTuple

from tests.live import Answer, LiveHub

PASSWORD = "sesame-" + secrets.token_urlsafe(9)


class OperatorLogin(NamedTuple):
    """A login of an operator; `headers` are those of its writes."""

    hub: LiveHub
    name: str
    headers: dict[str, str]

    def call(self, method: str, path: str, body: Any = None) -> Answer:
        return self.hub.call(method, path, body, headers=self.headers)

    def token(self, zone: str) -> str:
        """Return a connection token for the zone."""
        answer = self.call("POST", f"/v1/connection-tokens?zone={zone}", {})
        assert answer.status == 201, answer
        text: str = answer.json["token"]
        return text


def create(hub: LiveHub, role: str, *, name: str = "", **more: Any) -> Answer:
    """Create an operator as the hub's admin, with the password of this module."""
    name = name or f"{role}-{secrets.token_hex(4)}"
    body = {"name": name, "role": role, "password": PASSWORD, **more}
    answer = hub.operate("POST", "/v1/operators", body)
    assert answer.status == 201, answer
    return answer


def logged_in(hub: LiveHub, role: str) -> OperatorLogin:
    """Create an operator of the role, and log it in."""
    name = create(hub, role).json["name"]
    answer = log_in(hub, name)
    assert answer.json["role"] == role
    return login_of(hub, answer)


def log_in(hub: LiveHub, name: str, password: str = PASSWORD) -> Answer:
    """Log in; attempts of other tests do not count."""
    hub.sql("DELETE FROM login_attempts")
    return hub.call("POST", "/v1/session", {"username": name, "password": password})


def login_of(hub: LiveHub, answer: Answer) -> OperatorLogin:
    """Return the login that an answer began."""
    assert answer.status == 200, answer
    cookies = [part.split(";", 1)[0] for part in answer.headers["set-cookie"].split("\n")]
    token = answer.json["csrf_token"]
    headers = {"Cookie": "; ".join(cookies), "X-CSRFToken": token, "Referer": hub.url}
    return OperatorLogin(hub, answer.json["username"], headers)
