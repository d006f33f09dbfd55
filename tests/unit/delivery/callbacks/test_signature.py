"""Signatures equal those of the reference library."""

from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook

from delivery.callbacks.post import message_id, sign
from registrations.endpoints.secrets import secret_text

AT_S = 1_614_265_330


def test_the_published_vector() -> None:
    """The example of the Standard Webhooks specification's libraries."""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    message, body = "msg_p5jXN8AQM9LWM0D4loKWxJek", '{"test": 2432232314}'
    expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    when = datetime.fromtimestamp(AT_S, UTC)
    assert Webhook(secret).sign(message, when, body) == expected
    key = Webhook(secret)._whsecret
    assert sign(key, message, AT_S, body.encode()) == expected


@pytest.mark.parametrize("body", ["{}", '{"text":"é \\u0000 😀"}', "x" * 100_000])
@pytest.mark.parametrize("secret", [bytes(24), bytes(range(32)), bytes([255]) * 64])
def test_signatures_are_those_of_the_library(secret: bytes, body: str) -> None:
    when = datetime.fromtimestamp(AT_S, UTC)
    expected = Webhook(secret_text(secret)).sign("msg_1", when, body)
    assert sign(secret, "msg_1", AT_S, body.encode()) == expected


def test_an_id_names_the_delivery() -> None:
    uuid = "0197c2f0-1111-7222-8333-444455556666"
    assert message_id(uuid, 41, 3) == "msg_0197c2f0111172228333444455556666_41_3"
