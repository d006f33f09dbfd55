"""The receiver's check of signatures, against the public library of Standard Webhooks."""

from datetime import UTC, datetime

import pytest
from eventhub_client.callbacks import TOLERANCE_S, UnverifiedCallback, verify
from standardwebhooks.webhooks import Webhook

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
PUBLIC_KEY = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
NOW_S = 1_700_000_000
BODY = '{"stream":"orders","sequence":41}'


def headers(secret: str = SECRET, body: str = BODY, at_s: int = NOW_S) -> dict[str, str]:
    at = datetime.fromtimestamp(at_s, UTC)
    return {
        "Webhook-Id": "msg_1",
        "Webhook-Timestamp": str(at_s),
        "Webhook-Signature": Webhook(secret).sign("msg_1", at, body),
    }


def test_signature_of_the_public_library_is_accepted() -> None:
    assert verify(SECRET, headers(), BODY.encode(), now_s=NOW_S) == "msg_1"


def test_one_of_several_signatures_is_enough() -> None:
    found = headers()
    found["Webhook-Signature"] = f"v1,bm90IHRoaXM= v2,x {found['Webhook-Signature']}"
    assert verify(SECRET, found, BODY.encode(), now_s=NOW_S) == "msg_1"


def test_a_signature_by_one_of_several_secrets_is_enough() -> None:
    assert verify([OTHER, SECRET], headers(), BODY.encode(), now_s=NOW_S) == "msg_1"
    with pytest.raises(UnverifiedCallback):
        verify([OTHER, PUBLIC_KEY], headers(), BODY.encode(), now_s=NOW_S)


VECTOR = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXw"
    "VLPo3mNl8EM+m7TBAg==",
}
VECTOR_BODY = b'{"test": 2432232314}'


def test_the_published_vector_of_v1a_is_accepted() -> None:
    """The example of Svix's server, the reference of Standard Webhooks' asymmetric signatures."""
    now_s = 1_614_265_330
    message = VECTOR["webhook-id"]
    for keys in (PUBLIC_KEY, [SECRET, PUBLIC_KEY]):
        assert verify(keys, VECTOR, VECTOR_BODY, now_s=now_s) == message
    as_v1 = VECTOR | {"webhook-signature": VECTOR["webhook-signature"].replace("v1a", "v1")}
    for found, body, key in (
        (VECTOR, VECTOR_BODY + b" ", PUBLIC_KEY),
        (VECTOR | {"webhook-id": "msg_2"}, VECTOR_BODY, PUBLIC_KEY),
        (as_v1, VECTOR_BODY, PUBLIC_KEY),
        (VECTOR, VECTOR_BODY, "whpk_" + PUBLIC_KEY[-44:-1][::-1] + "="),
        (VECTOR, VECTOR_BODY, SECRET),
    ):
        with pytest.raises(UnverifiedCallback):
            verify(key, found, body, now_s=now_s)


@pytest.mark.parametrize(
    ("changed", "body", "now_s"),
    [
        (headers(secret=OTHER), BODY, NOW_S),
        (headers(), BODY + " ", NOW_S),
        (headers(), BODY, NOW_S + TOLERANCE_S + 1),
        (headers(), BODY, NOW_S - TOLERANCE_S - 1),
        ({**headers(), "Webhook-Id": "msg_2"}, BODY, NOW_S),
        ({**headers(), "Webhook-Timestamp": "soon"}, BODY, NOW_S),
        ({**headers(), "Webhook-Signature": "v1,&&&"}, BODY, NOW_S),
        ({**headers(), "Webhook-Signature": ""}, BODY, NOW_S),
        ({}, BODY, NOW_S),
    ],
)
def test_anything_else_is_refused(changed: dict[str, str], body: str, now_s: float) -> None:
    with pytest.raises(UnverifiedCallback):
        verify(SECRET, changed, body.encode(), now_s=now_s)
