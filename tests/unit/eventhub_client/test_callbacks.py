"""The receiver's check of signatures, against the public library of Standard Webhooks. What is
refused is in the vectors of both clients (test_vectors.py).
"""

from datetime import UTC, datetime

from eventhub_client.callbacks import verify
from standardwebhooks.webhooks import Webhook

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NOW_S = 1_700_000_000
BODY = '{"stream":"orders","sequence":41}'


def test_signature_of_the_public_library_is_accepted() -> None:
    headers = {
        "Webhook-Id": "msg_1",
        "Webhook-Timestamp": str(NOW_S),
        "Webhook-Signature": Webhook(SECRET).sign(
            "msg_1", datetime.fromtimestamp(NOW_S, UTC), BODY
        ),
    }
    assert verify(SECRET, headers, BODY.encode(), now_s=NOW_S) == "msg_1"
