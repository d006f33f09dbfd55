"""The rights of an operator's connection token at the websocket, and its end."""

import asyncio
import secrets
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from websockets.exceptions import InvalidStatus

from tests.acceptance.eventhub.access.test_access import EFFECTIVE_S, MEASURED_S, closed
from tests.acceptance.wire import EVENT, session
from tests.busy import stretched
from tests.live import LiveHub, LiveZone

LOOKED_AT_S = 0.25  # how often the keeper looks


class Login(NamedTuple):
    """One operator's login; `headers` are those of its writes."""

    username: str
    headers: dict[str, str]


@pytest.fixture
def login(hub: LiveHub) -> Iterator[Login]:
    """Yield a user of its own, with the password of the hub's operator."""
    name = f"op-{secrets.token_hex(4)}"
    hub.sql(
        "INSERT INTO auth_user (username, password, is_superuser, is_staff, is_active, first_name,"
        " last_name, email, date_joined) SELECT %s, password, false, true, true, '', '', '', now()"
        " FROM auth_user WHERE username = 'operator'",
        name,
    )
    answer = hub.call("POST", "/v1/session", {"username": name, "password": hub.password})
    assert answer.status == 200, answer
    cookies = [part.split(";", 1)[0] for part in answer.headers["set-cookie"].split("\n")]
    token = answer.json["csrf_token"]
    yield Login(name, {"Cookie": "; ".join(cookies), "X-CSRFToken": token, "Referer": hub.url})
    hub.sql("DELETE FROM auth_user WHERE username = %s", name)


def token_of(hub: LiveHub, login: Login, zone: LiveZone, **body: object) -> str:
    path = f"/v1/connection-tokens?zone={zone.name}"
    answer = hub.call("POST", path, body, headers=login.headers)
    assert answer.status == 201, answer
    text: str = answer.json["token"]
    return text


async def test_an_operators_token_listens_to_the_zones_streams_and_system(
    hub: LiveHub, zone: LiveZone, login: Login
) -> None:
    zone.create_stream("orders")
    zone.emit("orders", EVENT)
    token = token_of(hub, login, zone)
    async with session(hub, token) as reader:
        await reader.listen("orders", start="oldest")
        assert [frame["sequence"] for frame in await reader.events(1)] == [1]
    async with session(hub, token, web=1) as reader:
        await reader.listen("system", start="oldest")
        announced = {"zone": None}
        while announced["zone"] is None:  # events of the whole hub are delivered too
            first = (await reader.events(1))[0]["event"]
            announced = {"zone": None, **first["attributes"]}
        assert (first["type"], announced["zone"]) == ("zone.created", zone.name)


def dismissed(hub: LiveHub, login: Login) -> None:
    hub.sql("UPDATE auth_user SET is_active = false WHERE username = %s", login.username)


def no_operator_any_more(hub: LiveHub, login: Login) -> None:
    hub.sql("UPDATE auth_user SET is_staff = false WHERE username = %s", login.username)


def new_password(hub: LiveHub, login: Login) -> None:
    hub.sql("UPDATE auth_user SET password = 'x' WHERE username = %s", login.username)


def logged_out(hub: LiveHub, login: Login) -> None:
    assert hub.call("DELETE", "/v1/session", headers=login.headers).status == 204


@pytest.mark.parametrize("end", [dismissed, no_operator_any_more, new_password, logged_out])
async def test_an_operators_token_ends_with_the_login(
    hub: LiveHub, zone: LiveZone, login: Login, end: Callable[[LiveHub, Login], None]
) -> None:
    zone.create_stream("orders")
    token = token_of(hub, login, zone)
    async with session(hub, token) as reader:
        await reader.listen("orders")
        ending = asyncio.create_task(closed(reader))
        await asyncio.to_thread(end, hub, login)
        async with asyncio.timeout(stretched(EFFECTIVE_S + LOOKED_AT_S + MEASURED_S)):
            assert await ending == (4401, "invalid_credentials")
    with pytest.raises(InvalidStatus) as caught:
        async with session(hub, token):
            pass
    assert caught.value.response.status_code == 401


async def test_an_operators_socket_stays_while_the_login_lives(
    hub: LiveHub, zone: LiveZone, login: Login
) -> None:
    """The login is confirmed periodically, until the token expires."""
    zone.create_stream("orders")
    token = token_of(hub, login, zone, lifetime_s=3)
    async with session(hub, token) as reader:
        await reader.listen("orders")
        async with asyncio.timeout(3 + stretched(LOOKED_AT_S + MEASURED_S)):
            assert await closed(reader) == (4401, "token_expired")
