"""Verification of providers' requests: the values that they publish are accepted, and refused as
soon as the body, the time stamp, the signature or the secret is another one.
"""

import base64
from typing import Any, NamedTuple

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from registrations.sources.providers.api_key import ApiKeyOptions
from registrations.sources.providers.hmac_header import HmacOptions
from registrations.sources.providers.registry import PROVIDERS
from registrations.sources.received import ReceivedRequest
from registrations.sources.verification import Unverified, base64_hmac, hex_hmac

FORM = "application/x-www-form-urlencoded"


class Published(NamedTuple):
    """A request with the signature that a provider's documents or libraries state for it."""

    provider: str
    secret: str
    headers: dict[str, str]
    body: bytes
    now_s: int = 0
    target: str = ""
    options: Any = None

    def verify(self, *, now_s: int | None = None, secret: str = "", **changed: Any) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = ReceivedRequest(headers, "", self.body, self.target)._replace(**changed)
        now_s = self.now_s if now_s is None else now_s
        PROVIDERS[self.provider].verify(request, secret or self.secret, self.options, now_s)


GITHUB = Published(  # "Testing the webhook payload validation"
    "github",
    "It's a Secret to Everybody",
    {
        "X-Hub-Signature-256": "sha256="
        "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    },
    b"Hello, World!",
)
STANDARD = Published(  # the test vector of the libraries of Standard Webhooks
    "standard-webhooks",
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    },
    b'{"test": 2432232314}',
    1_614_265_330,
)
SLACK = Published(  # "Verifying requests from Slack"
    "slack",
    "8f742231b10e8888abcd99yyyzzz85a5",
    {
        "Content-Type": FORM,
        "X-Slack-Request-Timestamp": "1531420618",
        "X-Slack-Signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
    },
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow"
    b"&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner"
    b"&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands"
    b"%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
    b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c",
    1_531_420_618,
)
TWILIO = Published(  # the example of the helper libraries' documents
    "twilio",
    "12345",
    {"Content-Type": FORM, "X-Twilio-Signature": "RSOYDt4T1cUTdK1PDd93/VVr8B8="},
    b"CallSid=CA1234567890ABCDE&Caller=%2B14158675309&Digits=1234&From=%2B14158675309"
    b"&To=%2B18005551212",
    target="https://mycompany.com/myapp.php?foo=1&bar=2",
)
SHOPIFY = Published(  # a value that SQLPage's tests state for this scheme
    "shopify",
    "test-webhook-secret",
    {"X-Shopify-Hmac-SHA256": "QNyObTlKbMx2qDlPF/ZOZcBqg5OgPg+2oky3zldc0Gw="},
    b'{"id":1234567890,"email":"customer@example.com","total_price":"123.45"}',
)


def signed_by_stripe(secret: str = "whsec_test", v1: str = "", t: int = 1_492_774_577) -> Published:
    """Return a request as Stripe's documents describe its signature; they state no secret."""
    body = b'{"id": "evt_1", "object": "event", "type": "charge.succeeded", "created": 1492774577}'
    signature = v1 or hex_hmac(secret.encode(), b"%d." % t + body)
    # `v0` as in the documents: other schemes are ignored
    other = "6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39"
    header = f"t={t},v1={signature},v0={other}"
    return Published("stripe", secret, {"Stripe-Signature": header}, body, t)


def signed_with_json_by_twilio() -> Published:
    """Return a request with the body and digest of Twilio's snippet "signature_validation_json"."""
    target = (
        "https://example.com/myapp?bodySHA256="
        "5ccde7145dfb8f56479710896586cb9d5911809d83afbe34627818790db0aec9"
    )
    body = b'{"CallSid":"CA1234567890ABCDE","Caller":"+12349013030"}'
    headers = {
        "Content-Type": "application/json",
        "X-Twilio-Signature": base64_hmac(b"12345", target.encode(), "sha1"),
    }
    return Published("twilio", "12345", headers, body, target=target)


def signed_with_a_public_key() -> Published:
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    signature = base64.b64encode(key.sign(b"m1.1614265330." + STANDARD.body)).decode()
    public = base64.b64encode(key.public_key().public_bytes_raw()).decode()
    headers = {**STANDARD.headers, "webhook-id": "m1"}
    headers["webhook-signature"] = f"v1,{signature} v1a,{signature}"
    return STANDARD._replace(secret=f"whpk_{public}", headers=headers)


def signed_in_header(encoding: Any, **options: Any) -> Published:
    found = HmacOptions("X-Sign", "sha512", encoding, **options)
    encode = hex_hmac if encoding == "hex" else base64_hmac
    value = found.prefix + encode(b"key", b"body", "sha512")
    return Published("hmac", "key", {"X-Sign": value}, b"body", options=found)


STRIPE = signed_by_stripe()
SIGNED = {
    "github": GITHUB,
    "standard-webhooks": STANDARD,
    "public key": signed_with_a_public_key(),
    "stripe": STRIPE,
    "slack": SLACK,
    "shopify": SHOPIFY,
    "twilio": TWILIO,
    "twilio json": signed_with_json_by_twilio(),
    "hmac hex": signed_in_header("hex"),
    "hmac base64 with prefix": signed_in_header("base64", prefix="v7="),
}
each_signed = pytest.mark.parametrize("published", SIGNED.values(), ids=SIGNED.keys())


def refusal(published: Published, **changed: Any) -> str:
    with pytest.raises(Unverified) as caught:
        published.verify(**changed)
    return caught.value.reason


@each_signed
def test_published_signatures_are_accepted(published: Published) -> None:
    published.verify()


@each_signed
def test_a_changed_body_is_refused(published: Published) -> None:
    body = published.body
    assert refusal(published, body=body[:-1] + bytes([body[-1] ^ 1])) == "wrong_signature"
    assert refusal(published, body=body + b" ") == "wrong_signature"


@each_signed
def test_another_secret_is_refused(published: Published) -> None:
    other = {
        "standard-webhooks": "whsec_" + base64.b64encode(bytes(32)).decode(),
    }.get(published.provider, published.secret + "x")
    if published.secret.startswith("whpk_"):
        key = Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key().public_bytes_raw()
        other = "whpk_" + base64.b64encode(key).decode()
    assert refusal(published, secret=other) == "wrong_signature"


@each_signed
def test_each_changed_character_of_a_signature_is_refused(published: Published) -> None:
    [name] = [
        name for name in published.headers if "sign" in name.lower() or "hmac" in name.lower()
    ]
    value = published.headers[name]
    mark = {"stripe": "v1=", "standard-webhooks": "v1,"}.get(published.provider, "")
    if published.secret.startswith("whpk_"):
        mark = "v1a,"
    begin = value.index(mark) + len(mark)
    for at in range(begin, begin + 20):
        other = "0" if value[at] != "0" else "1"
        changed = published._replace(
            headers={**published.headers, name: value[:at] + other + value[at + 1 :]}
        )
        assert refusal(changed) in ("wrong_signature", "malformed_signature"), at


@each_signed
def test_a_missing_header_is_refused(published: Published) -> None:
    for name in published.headers.keys() - {"Content-Type"}:
        headers = {one: value for one, value in published.headers.items() if one != name}
        assert refusal(published._replace(headers=headers)) == "missing_signature", name


@pytest.mark.parametrize("published", [STANDARD, STRIPE, SLACK], ids=lambda one: one.provider)
def test_a_time_stamp_is_tolerated_for_five_minutes_either_way(published: Published) -> None:
    for difference_s in (-300, 300):
        published.verify(now_s=published.now_s + difference_s)
    for difference_s in (-301, 301):
        now_s = published.now_s + difference_s
        assert refusal(published, now_s=now_s) == "outside_tolerance"


@pytest.mark.parametrize("published", [STANDARD, STRIPE, SLACK], ids=lambda one: one.provider)
def test_a_changed_time_stamp_is_refused(published: Published) -> None:
    stamp = str(published.now_s)
    headers = {
        name: value.replace(stamp, str(published.now_s + 1))
        for name, value in published.headers.items()
    }
    assert refusal(published._replace(headers=headers)) == "wrong_signature"


def test_the_id_of_standard_webhooks_is_signed() -> None:
    headers = {**STANDARD.headers, "webhook-id": "msg_other"}
    assert refusal(STANDARD._replace(headers=headers)) == "wrong_signature"


def test_one_of_several_signatures_suffices() -> None:
    good = STANDARD.headers["webhook-signature"]
    headers = {**STANDARD.headers, "webhook-signature": f"v1,AAAA v2,BBBB {good}"}
    STANDARD._replace(headers=headers).verify()
    header = STRIPE.headers["Stripe-Signature"].replace(",v1=", ",v1=00,v1=")
    STRIPE._replace(headers={"Stripe-Signature": header}).verify()


@pytest.mark.parametrize(
    "header", ["v1=00", "t=1492774577", "t=x,v1=00", "t=1,t=2,v1=00", "t", "="]
)
def test_a_malformed_header_of_stripe_is_refused(header: str) -> None:
    changed = STRIPE._replace(headers={"Stripe-Signature": header})
    assert refusal(changed) == "malformed_signature"


def test_a_signature_of_stripes_scheme_v0_proves_nothing() -> None:
    header = STRIPE.headers["Stripe-Signature"].replace(",v1=", ",v0=")
    assert refusal(STRIPE._replace(headers={"Stripe-Signature": header})) == "malformed_signature"


def test_the_url_is_signed_by_twilio_and_its_port_does_not_count() -> None:
    TWILIO.verify(target="https://mycompany.com:443/myapp.php?foo=1&bar=2")
    for other in (
        "http://mycompany.com/myapp.php?foo=1&bar=2",
        "https://mycompany.com:8443/myapp.php?foo=1&bar=2",
        "https://mycompany.com/myapp.php?foo=1",
        "https://other.com/myapp.php?foo=1&bar=2",
    ):
        assert refusal(TWILIO, target=other) == "wrong_signature"


def test_twilios_rule_signs_with_sha256() -> None:
    fields = "CallSidCA1234567890ABCDECaller+14158675309Digits1234From+14158675309To+18005551212"
    signature = base64_hmac(b"12345", (TWILIO.target + fields).encode())
    headers = {**TWILIO.headers, "X-Twilio-Signature": signature}
    settings = {"X-Twilio-Webhooks-Signature-Settings": "key=K1,algorithm=HMAC_SHA256"}
    TWILIO._replace(headers={**headers, **settings}).verify()
    assert refusal(TWILIO._replace(headers=headers)) == "wrong_signature"


def test_hexadecimal_digits_of_any_hmac_may_be_upper_case() -> None:
    published = SIGNED["hmac hex"]
    published._replace(headers={"X-Sign": published.headers["X-Sign"].upper()}).verify()


def test_an_hmac_without_its_prefix_is_refused() -> None:
    published = SIGNED["hmac base64 with prefix"]
    bare = published.headers["X-Sign"].removeprefix("v7=")
    assert refusal(published._replace(headers={"X-Sign": bare})) == "wrong_signature"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("Basic d2ViaG9vazpvcGVuIHNlc2FtZQ==", None),
        ("basic d2ViaG9vazpvcGVuIHNlc2FtZQ==", None),
        ("Basic d2ViaG9vazpvcGVuIHNlc2FtZSE=", "wrong_credentials"),
        ("Bearer d2ViaG9vazpvcGVuIHNlc2FtZQ==", "wrong_credentials"),
        ("Basic ???", "malformed_signature"),
        ("Basic /w==", "malformed_signature"),
        ("", "missing_signature"),
    ],
)
def test_basic_authentication(given: str, reason: str | None) -> None:
    published = Published("basic", "webhook:open sesame", {"Authorization": given}, b"")
    if reason is None:
        published.verify()
    else:
        assert refusal(published) == reason


@pytest.mark.parametrize(
    ("location", "headers", "query", "reason"),
    [
        ("header", {"X-Key": "k"}, "", None),
        ("header", {"X-Key": "K"}, "", "wrong_credentials"),
        ("header", {}, "X-Key=k", "missing_signature"),
        ("query", {}, "a=1&X-Key=k", None),
        ("query", {}, "X-Key=", "missing_signature"),
        ("query", {}, "X-Key=other&X-Key=k", "missing_signature"),
        ("query", {"X-Key": "k"}, "", "missing_signature"),
    ],
)
def test_an_api_key(location: Any, headers: dict[str, str], query: str, reason: str | None) -> None:
    published = Published("api-key", "k", headers, b"", options=ApiKeyOptions("X-Key", location))
    if reason is None:
        published.verify(query=query)
    else:
        assert refusal(published, query=query) == reason


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_generated_secret_has_the_form_of_its_provider(name: str) -> None:
    first, second = (PROVIDERS[name].new_secret() for _ in range(2))
    PROVIDERS[name].check_secret(first)
    assert first != second
    assert len(first) >= 40


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("standard-webhooks", "whsec_short"),
        ("standard-webhooks", "whsec_" + "A" * 20),
        ("standard-webhooks", "whpk_AAAA"),
        ("standard-webhooks", "a" * 44),
        ("basic", "nocolon"),
        ("basic", ":x"),
        ("basic", "x:"),
    ],
)
def test_a_secret_of_another_form_is_refused(name: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"\."):
        PROVIDERS[name].check_secret(text)
