"""Deliveries with own headers, authentication and client certificates, to real receivers."""

import asyncio
import base64
import json
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from eventhub.base import limits
from registrations.endpoints.secrets import Keyring
from tests.certificates import Authority
from tests.integration.callbacks_world import (
    KEYRING,
    OK,
    CallbacksWorld,
    Posted,
    Receiver,
    answer,
    draining,
    receiver,
    until,
)

SESAME = "sesame-0123456789"
BASIC = {"type": "basic", "username": "hub", "password": SESAME}
BEARER = {"type": "bearer", "token": SESAME}
AUTHORITY = Authority("the tests")


def echo(posted: Posted) -> bytes:
    """Repeat the request's headers, as receivers do that help to find mistakes."""
    return answer("500 Oops", body=json.dumps(posted.headers).encode())


@pytest.mark.parametrize(
    ("authentication", "sent"),
    [
        (None, None),
        (BASIC, f"Basic {base64.b64encode(f'hub:{SESAME}'.encode()).decode()}"),
        (BEARER, f"Bearer {SESAME}"),
    ],
)
async def test_headers_and_authentication_are_sent_and_not_recorded(
    world: CallbacksWorld, authentication: dict[str, Any] | None, sent: str | None
) -> None:
    async with receiver(echo) as sink, draining(world):
        endpoint = world.endpoint(sink.url)
        world.credentials(endpoint, "headers", {"x-api-key": f"{SESAME}-1", "x-b": "plain text"})
        world.credentials(endpoint, "authentication", authentication)
        world.deliver(world.events(1), endpoint)
        await until(lambda: bool(world.outcomes(endpoint)))
    headers = sink.posted[0].headers
    assert headers.get("authorization") == sent
    assert (headers["x-api-key"], headers["x-b"]) == (f"{SESAME}-1", "plain text")
    recorded = str(world.sql("SELECT a::text FROM attempts a WHERE endpoint_id = %s", endpoint))
    assert "webhook-id" in recorded
    assert "(hidden)" in recorded
    assert SESAME not in recorded
    assert base64.b64encode(f"hub:{SESAME}".encode()).decode() not in recorded


def server_tls(folder: Path, *, client_ca: str = "") -> ssl.SSLContext:
    """Return the TLS settings of a receiver; `client_ca`: it requires client certificates."""
    certificate, key = AUTHORITY.issue("localhost")
    file = folder / "server.pem"
    file.write_text(certificate + key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)
    if client_ca:
        context.load_verify_locations(cadata=client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


async def outcome(world: CallbacksWorld, sink: Receiver, tls: dict[str, str] | None) -> str:
    """Return the outcome of the first attempt at an https endpoint with these certificates."""
    endpoint = world.endpoint(sink.url.replace("http", "https"))
    world.credentials(endpoint, "tls", tls)
    world.deliver(world.events(1), endpoint)
    await until(lambda: bool(world.outcomes(endpoint)))
    return world.outcomes(endpoint)[0][1]


async def test_a_receiver_of_a_private_authority_needs_that_authority(
    world: CallbacksWorld, tmp_path: Path
) -> None:
    other = Authority("another")
    async with receiver(tls=server_tls(tmp_path)) as sink, draining(world):
        trusted = {"certificate": "", "private_key": "", "ca": AUTHORITY.pem}
        assert await outcome(world, sink, trusted) == "delivered"
        assert await outcome(world, sink, {**trusted, "ca": other.pem}) == "tls"
        assert await outcome(world, sink, None) == "tls"


async def test_a_receiver_that_requires_a_client_certificate_gets_it(
    world: CallbacksWorld, tmp_path: Path
) -> None:
    certificate, key = AUTHORITY.issue("hub")
    stranger, strangers_key = Authority("another").issue("hub")
    tls = server_tls(tmp_path, client_ca=AUTHORITY.pem)
    ca = {"ca": AUTHORITY.pem}
    async with receiver(tls=tls) as sink, draining(world):
        own = {"certificate": certificate, "private_key": key, **ca}
        assert await outcome(world, sink, own) == "delivered"
        # TLS 1.3: the server refuses the certificate after the client's handshake has ended
        refused = ("tls", "connection")
        other = {"certificate": stranger, "private_key": strangers_key, **ca}
        assert await outcome(world, sink, other) in refused
        assert await outcome(world, sink, {"certificate": "", "private_key": "", **ca}) in refused
    assert len(sink.posted) == 1


# --- OAuth 2.0 ---


class Issuer:
    """Scripts of a token URL and of an endpoint that takes its tokens."""

    def __init__(self, lifetime_s: float = 3_600) -> None:
        self.requests: list[Posted] = []
        self.lifetime_s = lifetime_s
        self.valid = 0  # the number of the only valid token
        self.pause_s = 0.0
        self.refuses: bytes | None = None

    async def issue(self, posted: Posted) -> bytes:
        self.requests.append(posted)
        await asyncio.sleep(self.pause_s)
        if self.refuses is not None:
            return self.refuses
        self.valid = len(self.requests)
        token = {"access_token": f"{SESAME}.{self.valid}", "token_type": "bearer",
                 "expires_in": self.lifetime_s, "padding": "x" * 3_000}  # fmt: skip
        return answer("200 OK", body=json.dumps(token).encode())

    def take(self, posted: Posted) -> bytes:
        good = posted.headers.get("authorization") == f"Bearer {SESAME}.{self.valid}"
        return OK if good else answer("401 Unauthorized", body=json.dumps(posted.headers).encode())


def oauth2(issuer: Receiver, **more: Any) -> dict[str, Any]:
    return {
        "type": "oauth2_client_credentials",
        "token_url": issuer.url,
        "client_id": "the hub",
        "client_secret": f"{SESAME}:secret",
        "client_authentication": "basic",
        **more,
    }


async def test_a_token_is_requested_once_for_all_workers(world: CallbacksWorld) -> None:
    issuer = Issuer()
    issuer.pause_s = 0.5
    async with receiver(issuer.issue) as token_url, receiver(issuer.take) as sink:
        endpoint = world.endpoint(sink.url)
        world.credentials(endpoint, "authentication", oauth2(token_url, scopes=["a", "b"]))
        world.deliver(world.events(60), endpoint)
        async with draining(world), draining(world), draining(world):
            await until(lambda: world.states(endpoint) == ["delivered"] * 60)
    assert len(issuer.requests) == 1
    assert {name for _, name, _ in world.outcomes(endpoint)} == {"delivered"}
    [request] = issuer.requests
    assert request.headers["content-type"] == "application/x-www-form-urlencoded"
    pair = base64.b64decode(request.headers["authorization"].removeprefix("Basic ")).decode()
    assert pair == f"the+hub:{SESAME}%3Asecret"
    form = parse_qs(request.body.decode())
    assert form == {"grant_type": ["client_credentials"], "scope": ["a b"]}
    stored = str(world.sql("SELECT t::text FROM endpoint_tokens t"))
    assert SESAME not in stored
    [(sealed,)] = world.sql("SELECT sealed FROM endpoint_tokens WHERE endpoint_id = %s", endpoint)
    assert KEYRING.unseal(bytes(sealed)) == f"{SESAME}.1".encode()


async def test_the_client_may_authenticate_in_the_body(world: CallbacksWorld) -> None:
    issuer = Issuer()
    async with receiver(issuer.issue) as token_url, receiver(issuer.take) as sink, draining(world):
        endpoint = world.endpoint(sink.url)
        value = oauth2(token_url, client_authentication="body", audience="https://a.example/")
        world.credentials(endpoint, "authentication", value)
        world.deliver(world.events(1), endpoint)
        await until(lambda: world.states(endpoint) == ["delivered"])
    [request] = issuer.requests
    assert "authorization" not in request.headers
    assert parse_qs(request.body.decode()) == {
        "grant_type": ["client_credentials"],
        "audience": ["https://a.example/"],
        "client_id": ["the hub"],
        "client_secret": [f"{SESAME}:secret"],
    }


async def test_a_token_is_replaced_before_it_expires(world: CallbacksWorld) -> None:
    issuer = Issuer()
    async with receiver(issuer.issue) as token_url, receiver(issuer.take) as sink:
        endpoint = world.endpoint(sink.url)
        world.credentials(endpoint, "authentication", oauth2(token_url))
        for expected in (1, 2):
            async with draining(world):  # a new worker knows only what is stored
                sent = world.events(1)
                world.deliver(sent, endpoint)
                await until(lambda: world.states(endpoint)[-1] == "delivered")
            assert len(issuer.requests) == expected
            [(left,)] = world.sql(
                "SELECT extract(epoch FROM expires_at - now()) FROM endpoint_tokens"
                " WHERE endpoint_id = %s",
                endpoint,
            )
            assert 3_600 - limits.OAUTH2_MARGIN_S - 30 < left <= 3_600 - limits.OAUTH2_MARGIN_S
            world.sql("UPDATE endpoint_tokens SET expires_at = now()")


@pytest.mark.parametrize(
    "before",
    [
        "obtained_at = obtained_at + interval '1 day', expires_at = expires_at + interval '1 day'",
        "sealed = NULL, obtained_at = NULL, expires_at = NULL, error = 'refused',"
        " claimed_until = now() + interval '1 day'",
    ],
)
async def test_a_token_of_a_clock_that_was_fast_is_replaced(
    world: CallbacksWorld, before: str
) -> None:
    """Regression: deliveries failed until the clock was again where it had been."""
    issuer = Issuer()
    async with receiver(issuer.issue) as token_url, receiver(issuer.take) as sink:
        endpoint = world.endpoint(sink.url)
        world.credentials(endpoint, "authentication", oauth2(token_url))
        for deliveries in (1, 2):
            async with draining(world):  # a new worker knows only what is stored
                world.deliver(world.events(1), endpoint)
                await until(lambda: len(world.outcomes(endpoint)) == deliveries)  # noqa: B023
            issuer.valid = -1  # expired
            world.sql(f"UPDATE endpoint_tokens SET {before}")
    assert world.outcomes(endpoint) == [(1, "delivered", 204)] * 2


async def test_a_rejected_token_is_replaced_once_within_the_attempt(world: CallbacksWorld) -> None:
    issuer = Issuer()
    async with receiver(issuer.issue) as token_url, receiver(issuer.take) as sink, draining(world):
        endpoint = world.endpoint(sink.url)
        world.credentials(endpoint, "authentication", oauth2(token_url))
        world.deliver(world.events(1), endpoint)
        await until(lambda: world.states(endpoint) == ["delivered"])
        issuer.valid = -1  # revoked by the issuer
        world.sql("UPDATE endpoint_tokens SET obtained_at = obtained_at - interval '1 hour'")
    async with receiver(issuer.issue) as token_url, receiver(issuer.take) as sink, draining(world):
        world.sql("UPDATE endpoints SET url = %s WHERE id = %s", sink.url, endpoint)
        world.sql("UPDATE endpoints SET changed_at = clock_timestamp() WHERE id = %s", endpoint)
        moved = KEYRING.seal(json.dumps(oauth2(token_url)).encode())
        world.sql(
            "UPDATE endpoint_secrets SET sealed = %s WHERE kind = 'authentication'"
            " AND endpoint_id = %s",
            moved,
            endpoint,
        )
        world.deliver(world.events(1), endpoint)
        await until(lambda: world.states(endpoint) == ["delivered"] * 2)
        assert world.outcomes(endpoint) == [(1, "delivered", 204)] * 2
        assert len(sink.posted) == 2
        assert len(issuer.requests) == 2
        issuer.valid = -1  # the new token is rejected too: it was issued a moment ago
        world.deliver(world.events(1), endpoint)
        await until(lambda: len(world.outcomes(endpoint)) == 3)
        assert world.outcomes(endpoint)[-1] == (1, "status", 401)
        assert len(issuer.requests) == 2
    recorded = str(world.sql("SELECT a::text FROM attempts a WHERE endpoint_id = %s", endpoint))
    assert SESAME not in recorded


@pytest.mark.parametrize(
    ("refuses", "reason"),
    [
        (answer("401 Unauthorized", body=b'{"error": "invalid_client"}'), "401 Unauthorized"),
        (answer("400 Bad Request", body=f"no {SESAME}:secret".encode()), "(hidden)"),
        (answer("200 OK", body=b"<html>"), "no JSON object"),
        (answer("200 OK", body=b'{"access_token": "a b", "token_type": "bearer"}'), "printable"),
        (answer("200 OK", body=b'{"access_token": "a", "token_type": "mac"}'), "not Bearer"),
        (answer("307 Temporary Redirect", "location: /x"), "307"),
        (b"SSH-2.0-OpenSSH\r\n", "no access token from"),
    ],
)
async def test_without_a_token_nothing_is_sent_and_the_attempt_says_why(
    world: CallbacksWorld, refuses: bytes, reason: str
) -> None:
    issuer = Issuer()
    issuer.refuses = refuses
    async with receiver(issuer.issue) as token_url, receiver() as sink, draining(world):
        endpoint = world.endpoint(sink.url)
        world.credentials(endpoint, "authentication", oauth2(token_url))
        world.deliver(world.events(4), endpoint)
        await until(lambda: len(world.outcomes(endpoint)) >= 4)
        assert len(issuer.requests) == 1  # a failed request is not repeated for some seconds
    assert sink.posted == []
    assert {(name, status) for _, name, status in world.outcomes(endpoint)} == {
        ("token_unavailable", None)
    }
    [(found,)] = world.sql(
        "SELECT DISTINCT response FROM attempts WHERE endpoint_id = %s", endpoint
    )
    assert reason in found
    assert token_url.url in found
    assert SESAME not in found


async def test_a_token_url_that_hangs_is_a_stored_failure(
    world: CallbacksWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise no worker would know of it, and each attempt would wait for the whole time."""
    monkeypatch.setattr(limits, "OAUTH2_REQUEST_S_MAX", 0.2)
    issuer = Issuer()
    issuer.pause_s = 30
    async with receiver(issuer.issue) as token_url, receiver() as sink, draining(world):
        endpoint = world.endpoint(sink.url)
        world.credentials(endpoint, "authentication", oauth2(token_url))
        world.deliver(world.events(1), endpoint)
        await until(lambda: len(world.outcomes(endpoint)) == 1)
    [(error,)] = world.sql("SELECT error FROM endpoint_tokens WHERE endpoint_id = %s", endpoint)
    assert token_url.url in error


async def test_a_token_url_is_under_the_address_guard(world: CallbacksWorld) -> None:
    issuer = Issuer()
    async with receiver(issuer.issue) as token_url, receiver() as sink:
        port = f"127.0.0.1:{sink.port}"
        async with draining(world, allow=(port,)):
            endpoint = world.endpoint(sink.url)
            world.credentials(endpoint, "authentication", oauth2(token_url))
            world.deliver(world.events(1), endpoint)
            await until(lambda: bool(world.outcomes(endpoint)))
    assert world.outcomes(endpoint)[0] == (1, "token_unavailable", None)
    assert token_url.connections == 0


async def test_a_new_authentication_gets_a_new_token(world: CallbacksWorld) -> None:
    issuer = Issuer()
    async with receiver(issuer.issue) as token_url, receiver(issuer.take) as sink, draining(world):
        endpoint = world.endpoint(sink.url)
        for expected in (1, 2):
            value = oauth2(token_url, client_secret=f"{SESAME}:{expected}")
            world.credentials(endpoint, "authentication", value)
            world.deliver(world.events(1), endpoint)
            await until(
                lambda: world.states(endpoint).count("delivered") == expected  # noqa: B023
            )
            assert len(issuer.requests) == expected


async def test_a_token_under_a_former_key_is_replaced(world: CallbacksWorld) -> None:
    issuer = Issuer()
    former = Keyring(("a former key of the tests",)).seal(b"lost")
    async with receiver(issuer.issue) as token_url, receiver(issuer.take) as sink:
        endpoint = world.endpoint(sink.url)
        world.credentials(endpoint, "authentication", oauth2(token_url))
        for expected in (1, 2):
            async with draining(world):  # a new worker knows only what is stored
                world.deliver(world.events(1), endpoint)
                await until(
                    lambda: world.states(endpoint).count("delivered") == expected  # noqa: B023
                )
            assert len(issuer.requests) == expected
            world.sql("UPDATE endpoint_tokens SET sealed = %s", former)
    assert {name for _, name, _ in world.outcomes(endpoint)} == {"delivered"}


async def test_a_worker_that_dies_requesting_a_token_is_replaced(world: CallbacksWorld) -> None:
    issuer = Issuer()
    async with receiver(issuer.issue) as token_url, receiver(issuer.take) as sink:
        endpoint = world.endpoint(sink.url)
        world.credentials(endpoint, "authentication", oauth2(token_url))
        world.sql(
            "INSERT INTO endpoint_tokens (endpoint_id, secret_id, claim, claimed_until)"
            " SELECT endpoint_id, id, gen_random_uuid(), now() + interval '1 second'"
            " FROM endpoint_secrets WHERE endpoint_id = %s AND kind = 'authentication'",
            endpoint,
        )
        async with draining(world):
            world.deliver(world.events(1), endpoint)
            await until(lambda: world.states(endpoint) == ["delivered"])
    assert world.outcomes(endpoint) == [(1, "delivered", 204)]
