"""Keys as text, connection tokens, and who they make of the caller."""

import jwt
import pytest

from eventhub.access.grants import Grant
from eventhub.access.keys import digest_of, is_key, is_public_id, new_key
from eventhub.access.principal import Principal, narrow
from eventhub.access.tokens import TokenClaims, mint_token, read_token
from eventhub.base.clock import ManualClock
from eventhub.base.errors import EventHubError, Forbidden, InvalidCredentials, TokenExpired

SECRET = "a secret of the hub"
PUBLIC_ID = "abcdefghijkm"
PRINCIPAL = Principal(1, PUBLIC_ID, 2, "shop", 3, "default", (Grant("listen", "orders.*"),), None)


def test_a_key_has_the_documented_form_and_its_digest() -> None:
    made = new_key()
    assert is_key(made.text)
    assert is_public_id(made.public_id)
    assert made.text.startswith(f"ehk_{made.public_id}_")
    assert len(made.text) == len("ehk_") + 12 + 1 + 43
    assert made.digest == digest_of(made.text)
    assert len({new_key().text for _ in range(100)}) == 100


@pytest.mark.parametrize("text", ["", "ehk_", "ehk_abcdefghijkm_short", "EHK_" + "a" * 56, "a.b.c"])
def test_other_texts_are_no_keys(text: str) -> None:
    assert not is_key(text)
    assert not is_key(new_key().text + "\n")


def test_a_token_carries_its_minted_grants_until_it_expires() -> None:
    clock = ManualClock()
    grants = (Grant("listen", "orders.eu"),)
    text = mint_token(SECRET, TokenClaims(PUBLIC_ID, grants), 60, clock)
    for _ in range(2):  # reusable
        claims = read_token(SECRET, text, clock)
        assert claims == TokenClaims(PUBLIC_ID, grants, clock.now_us() + 60_000_000)
    clock.advance_s(59)
    read_token(SECRET, text, clock)
    clock.advance_s(1)
    with pytest.raises(TokenExpired):
        read_token(SECRET, text, clock)


def forged(**changes: object) -> str:
    payload = {"aud": "eventhub-connection", "key": PUBLIC_ID, "exp": 1 << 40, **changes}
    given = {name: value for name, value in payload.items() if value is not None}
    return jwt.encode(given, "another secret, also long enough", algorithm="HS256")


def unsigned() -> str:
    payload = {"aud": "eventhub-connection", "key": PUBLIC_ID, "exp": 1 << 40}
    return jwt.encode(payload, "", algorithm="none")


@pytest.mark.parametrize(
    "text", ["", "x", "a.b.c", "é", "\0", "." * 100, "a" * 5000, forged(), unsigned()]
)
def test_forged_and_broken_tokens_are_refused(text: str) -> None:
    with pytest.raises(InvalidCredentials):
        read_token(SECRET, text, ManualClock())


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": "another"},
        {"aud": None},
        {"key": None},
        {"key": 7},
        {"key": "x' OR 1=1"},
        {"exp": None},
        {"exp": "never"},
        {"grants": "all"},
        {"grants": [{"action": "fly", "streams": "*"}]},
    ],
)
def test_a_signed_token_of_another_shape_is_refused(
    changes: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "eventhub.access.tokens._signing_key", lambda _: b"another secret, also long enough"
    )
    assert read_token(SECRET, forged(), ManualClock()).public_id == PUBLIC_ID
    with pytest.raises(InvalidCredentials):
        read_token(SECRET, forged(**changes), ManualClock())


def test_a_changed_token_and_another_hubs_token_are_refused() -> None:
    clock = ManualClock()
    text = mint_token(SECRET, TokenClaims(PUBLIC_ID), 60, clock)
    head, payload, signature = text.split(".")
    for other in (
        f"{head}.{payload[:-2]}AA.{signature}",
        f"{head}.{payload}.",
        f"{head}.{payload}",
    ):
        with pytest.raises(InvalidCredentials):
            read_token(SECRET, other, clock)
    with pytest.raises(InvalidCredentials):
        read_token("the secret of another hub", text, clock)
    found = read_token("the next secret", text, clock, "an older secret", SECRET)
    assert found == read_token(SECRET, text, clock)
    with pytest.raises(InvalidCredentials):
        read_token("the next secret", text, clock, "an older secret")


def test_without_a_secret_no_token_is_minted_or_read() -> None:
    """The settings' placeholder is public: a token signed with it would be anybody's."""
    with pytest.raises(EventHubError, match="EVENTHUB_SECRET_KEY"):
        mint_token("", TokenClaims(PUBLIC_ID), 60, ManualClock())
    with pytest.raises(EventHubError):
        read_token("", forged(), ManualClock())


def test_a_token_narrows_its_key_and_never_widens_it() -> None:
    wide = narrow(PRINCIPAL, TokenClaims(PUBLIC_ID, (Grant("listen", "*"), Grant("emit", "*")), 5))
    assert wide.may("listen", "orders.eu")
    assert not wide.may("listen", "bills")
    assert not wide.may("emit", "orders.eu")
    slim = narrow(PRINCIPAL, TokenClaims(PUBLIC_ID, (Grant("listen", "orders.eu"),), 5))
    assert slim.may("listen", "orders.eu")
    assert not slim.may("listen", "orders.us")
    assert narrow(PRINCIPAL, TokenClaims(PUBLIC_ID, (), 5)).may("listen", "orders.eu") is False
    assert narrow(PRINCIPAL, TokenClaims(PUBLIC_ID, None, 5)).may("listen", "orders.eu")


def test_a_token_ends_with_its_key_at_the_latest() -> None:
    assert narrow(PRINCIPAL, TokenClaims(PUBLIC_ID, None, 5)).expires_at_us == 5
    ending = PRINCIPAL._replace(expires_at_us=3)
    assert narrow(ending, TokenClaims(PUBLIC_ID, None, 5)).expires_at_us == 3


def test_a_refusal_names_the_missing_grant() -> None:
    PRINCIPAL.require("listen", "orders.eu")
    with pytest.raises(Forbidden, match=r"emit:orders\.eu"):
        PRINCIPAL.require("emit", "orders.eu")
