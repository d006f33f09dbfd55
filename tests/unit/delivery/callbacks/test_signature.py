"""Signatures equal those of the reference library."""

import base64
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook

from delivery.callbacks.post import message_id
from delivery.callbacks.signatures import sign, signer
from registrations.endpoints.secrets import public_key_text, secret_text

AT_S = 1_614_265_330


def test_the_published_vector() -> None:
    """The example of the Standard Webhooks specification's libraries."""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    message, body = "msg_p5jXN8AQM9LWM0D4loKWxJek", '{"test": 2432232314}'
    expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    when = datetime.fromtimestamp(AT_S, UTC)
    assert Webhook(secret).sign(message, when, body) == expected
    key = Webhook(secret)._whsecret
    assert sign([signer("v1", key)], message, AT_S, body.encode()) == expected


def test_the_published_vector_of_v1a() -> None:
    """The example of Svix's server, the reference of Standard Webhooks' asymmetric signatures."""
    private = (
        "6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
    )
    seed = base64.b64decode(private)[:32]
    assert public_key_text(seed) == "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
    message, body = "msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}'
    assert sign([signer("v1a", seed)], message, AT_S, body) == (
        "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+"
        "m7TBAg=="
    )


def test_every_signer_signs_until_its_end() -> None:
    signers = [
        signer("v1", bytes(32)),
        signer("v1", bytes(24), (AT_S + 1) * 1_000_000),
        signer("v1", bytes(25), AT_S * 1_000_000),
    ]
    [new, old] = sign(signers, "msg_1", AT_S, b"{}").split()
    assert [new] == sign(signers[:1], "msg_1", AT_S, b"{}").split()
    assert [old] == sign([signer("v1", bytes(24))], "msg_1", AT_S, b"{}").split()
    assert sign(signers, "msg_1", AT_S + 1, b"{}").count("v1,") == 1


@pytest.mark.parametrize("body", ["{}", '{"text":"é \\u0000 😀"}', "x" * 100_000])
@pytest.mark.parametrize("secret", [bytes(24), bytes(range(32)), bytes([255]) * 64])
def test_signatures_are_those_of_the_library(secret: bytes, body: str) -> None:
    when = datetime.fromtimestamp(AT_S, UTC)
    expected = Webhook(secret_text(secret)).sign("msg_1", when, body)
    assert sign([signer("v1", secret)], "msg_1", AT_S, body.encode()) == expected


def test_an_id_names_the_delivery() -> None:
    uuid = "0197c2f0-1111-7222-8333-444455556666"
    assert message_id(uuid, 41, 3) == "msg_0197c2f0111172228333444455556666_41_3"
