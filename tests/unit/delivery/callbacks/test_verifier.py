"""What the answer of a receiver to a verification means."""

import pytest

from delivery.callbacks.client import CallbackResponse
from delivery.callbacks.verifier import challenge_result, handshake_result

ORIGIN, RATE = "webhook-allowed-origin", "webhook-allowed-rate"


def response(status: int, body: bytes = b"", **headers: str) -> CallbackResponse:
    named = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return CallbackResponse(status, "", named, body)


@pytest.mark.parametrize(
    ("status", "headers", "outcome", "rate", "said"),
    [
        (200, {ORIGIN: "hub.example"}, "verified", None, ""),
        (204, {ORIGIN: "*"}, "verified", None, ""),
        (200, {"WebHook-Allowed-Origin": " HUB.example "}, "verified", None, ""),
        (200, {ORIGIN: "*", RATE: "*"}, "verified", None, ""),
        (200, {ORIGIN: "*", RATE: "120"}, "verified", 120, ""),
        (200, {ORIGIN: "*", RATE: "1"}, "verified", 1, ""),
        (200, {ORIGIN: "*", RATE: "9" * 15}, "verified", None, ""),
        (200, {}, "refused", None, "it is missing"),
        (200, {RATE: "120"}, "refused", None, "it is missing"),
        (200, {ORIGIN: ""}, "refused", None, "it is missing"),
        (200, {ORIGIN: "other.example"}, "refused", None, "it is 'other.example'"),
        (200, {ORIGIN: "hub.example, other.example"}, "refused", None, "must be 'hub.example'"),
        (200, {ORIGIN: "*", RATE: "0"}, "refused", None, "it is '0'"),
        (200, {ORIGIN: "*", RATE: "-1"}, "refused", None, "at least 1"),
        (200, {ORIGIN: "*", RATE: "1.5"}, "refused", None, "at least 1"),
        (200, {ORIGIN: "*", RATE: "¹"}, "refused", None, "at least 1"),
        (200, {ORIGIN: "*", RATE: "9" * 30}, "refused", None, "at least 1"),
        (405, {ORIGIN: "*"}, "refused", None, "it has 405"),
        (301, {ORIGIN: "*"}, "refused", None, "it has 301"),
        (500, {}, "refused", None, "it has 500"),
    ],
)
def test_a_receiver_agrees_to_the_handshake_by_its_headers(
    status: int, headers: dict[str, str], outcome: str, rate: int | None, said: str
) -> None:
    found = handshake_result(response(status, **headers), "hub.example", ())
    assert (found.outcome, found.status, found.allowed_rate) == (outcome, status, rate)
    assert said in found.detail
    assert bool(found.detail) is (outcome == "refused")


@pytest.mark.parametrize(
    ("status", "body", "outcome"),
    [
        (200, b"abc", "verified"),
        (202, b" abc\r\n", "verified"),
        (200, b'"abc"', "verified"),
        (200, b'{"challenge": "abc", "more": 1}', "verified"),
        (200, b"", "refused"),
        (200, b"ok", "refused"),
        (200, b"abcd", "refused"),
        (200, b'{"challenge": "abd"}', "refused"),
        (200, b'{"challenge": ["abc"]}', "refused"),
        (200, b"[" * 1_024, "refused"),
        (200, b"\xff\x00", "refused"),
        (302, b"abc", "refused"),
        (400, b"abc", "refused"),
    ],
)
def test_a_receiver_agrees_by_returning_the_challenge(
    status: int, body: bytes, outcome: str
) -> None:
    found = challenge_result(response(status, body), "abc", ())
    assert (found.outcome, found.status) == (outcome, status)
    assert "\0" not in found.detail


def test_a_quotation_has_no_secret_and_no_part_of_one() -> None:
    secret = "s3cret-of-the-receiver"
    cut = "x" * 190 + secret
    for text in (f"it was {secret}", cut):
        found = challenge_result(response(200, text.encode()), "abc", (secret,)).detail
        assert "s3cret" not in found
        found = handshake_result(response(200, **{ORIGIN: text}), "hub.example", (secret,)).detail
        assert "s3cret" not in found
