"""Signatures of real deliveries: several secrets, their expiry, and secrets that cannot be
decrypted.
"""

import pytest
from eventhub_client.callbacks import verify
from standardwebhooks import Webhook, WebhookVerificationError

from registrations.endpoints.secrets import Keyring, public_key_text, secret_text
from tests.integration.callbacks_world import (
    KEYRING,
    SECRET,
    CallbacksWorld,
    Posted,
    draining,
    receiver,
    until,
)

OLD, NEW, PAIR = b"o" * 32, b"n" * 32, b"p" * 32


def add_secret(
    world: CallbacksWorld, endpoint: int, kind: str, secret: bytes, expires: str | None = None
) -> None:
    """Insert a secret; `expires`: an interval from now."""
    world.sql(
        "INSERT INTO endpoint_secrets (endpoint_id, kind, sealed, expires_at)"
        " VALUES (%s, %s, %s, now() + %s::interval)",
        endpoint,
        kind,
        KEYRING.seal(secret),
        expires,
    )
    world.sql("UPDATE endpoints SET changed_at = clock_timestamp() WHERE id = %s", endpoint)


def accepted(posted: Posted, secret: bytes) -> bool:
    try:
        Webhook(secret_text(secret)).verify(posted.body, posted.headers)
    except WebhookVerificationError:
        return False
    return True


async def test_old_and_new_secret_sign_until_the_old_one_expires(world: CallbacksWorld) -> None:
    sent = world.events(3)
    first, second, third = (sent._replace(sequences=[n]) for n in sent.sequences)
    async with receiver() as sink, draining(world):
        endpoint = world.endpoint(sink.url)
        world.deliver(first, endpoint)
        await until(lambda: len(sink.posted) == 1)
        add_secret(world, endpoint, "v1", OLD, "1 day")
        add_secret(world, endpoint, "v1", NEW)
        world.deliver(second, endpoint)
        await until(lambda: len(sink.posted) == 2)
        world.sql("UPDATE endpoint_secrets SET expires_at = now() WHERE expires_at IS NOT NULL")
        world.sql("UPDATE endpoints SET changed_at = clock_timestamp()")
        world.deliver(third, endpoint)
        await until(lambda: len(sink.posted) == 3)
    table = [[accepted(posted, key) for key in (SECRET, OLD, NEW)] for posted in sink.posted]
    assert table == [[True, False, False], [False, True, True], [False, False, True]]
    assert len(sink.posted[1].headers["webhook-signature"].split()) == 2


@pytest.mark.parametrize(
    ("signature", "versions"), [("v1", {"v1"}), ("v1a", {"v1a"}), ("both", {"v1", "v1a"})]
)
async def test_an_endpoint_is_signed_as_it_chose(
    world: CallbacksWorld, signature: str, versions: set[str]
) -> None:
    async with receiver() as sink, draining(world):
        endpoint = world.endpoint(sink.url)
        world.sql("UPDATE endpoints SET signature = %s WHERE id = %s", signature, endpoint)
        add_secret(world, endpoint, "v1a", PAIR)
        world.deliver(world.events(1), endpoint)
        await until(lambda: len(sink.posted) == 1)
    [posted] = sink.posted
    found = posted.headers["webhook-signature"].split()
    assert {each.partition(",")[0] for each in found} == versions
    assert accepted(posted, SECRET) is ("v1" in versions)
    if "v1a" in versions:
        verify(public_key_text(PAIR), posted.headers, posted.body)


async def test_a_secret_under_an_unknown_key_is_an_internal_failure_with_what_to_do(
    world: CallbacksWorld,
) -> None:
    async with receiver() as sink, draining(world):
        endpoint = world.endpoint(sink.url)
        other = Keyring(("another key of the tests " * 2,)).seal(SECRET)
        world.sql("UPDATE endpoints SET secret = %s WHERE id = %s", other, endpoint)
        world.deliver(world.events(1), endpoint)
        await until(lambda: bool(world.outcomes(endpoint)))
        assert world.outcomes(endpoint)[0] == (1, "internal", None)
        [[reason]] = world.sql(
            "SELECT response FROM attempts WHERE endpoint_id = %s LIMIT 1", endpoint
        )
        assert "EVENTHUB_SECRET_KEY_FALLBACKS" in reason
        assert sink.posted == []
        add_secret(world, endpoint, "v1", NEW)  # the remedy
        await until(lambda: world.states(endpoint) == ["delivered"])
    assert accepted(sink.posted[0], NEW)
