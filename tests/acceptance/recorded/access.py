"""Calls about zones, clients, keys, connection tokens, channels and logins."""

from typing import Any

from tests.acceptance.recorded.call import NEW, Call, gets, if_match, sends, sql

EMIT = {"action": "emit", "streams": "*"}
LISTEN = {"action": "listen", "streams": "orders.*"}
ACTION = {"EventHub-Action": "ticket 4711"}
LONG = "n" * 201
NAMES = ("a b", "-a", "a/b", "", "\u00e9", "a\u0000b", "a" * 200, LONG)
ZONES = [
    Call("operator", "POST /v1/zones", {"name": "north"}),
    Call("operator", "POST /v1/zones", {"name": "south"}, ACTION),
    Call("operator", "POST /v1/zones", {"name": "north"}),
    Call("admin", "POST /v1/zones", {"name": "east"}),
    *sends("operator", "POST /v1/zones", {}, None, *({"name": name} for name in NAMES)),
    *gets(
        "operator",
        "/v1/zones",
        "/v1/zones?limit=1",
        "/v1/zones?limit=2",
        "/v1/zones?limit=2&after=north",
        "/v1/zones?after=zone-2",
        "/v1/zones?limit=0",
        "/v1/zones?limit=1001",
        "/v1/zones?limit=one",
        "/v1/zones?after=a%20b",
        "/v1/zones?zone=north",
    ),
    *gets("admin", "/v1/zones"),
    Call("operator", "POST /v1/zones", {"name": "x"}, {"X-CSRFToken": "x" * 32}),
]
CLIENTS = [
    Call("admin", "POST /v1/clients", {"name": "shop"}, keep={"<shop>": "changed"}),
    Call("admin", "POST /v1/clients", {"name": "cafe", "groups": ["ops", "de", "ops"]}, ACTION),
    Call("operator", "POST /v1/clients?zone=<zone>", {"name": "depot", "groups": []}),
    Call("operator", "POST /v1/clients", {"name": "of-default"}),
    Call("admin", "POST /v1/clients", {"name": "shop"}),
    Call("admin", "POST /v1/clients", {"name": "e"}, {"EventHub-Action": "x" * 201}),
    Call("admin", "POST /v1/clients", {"name": "e"}, {"EventHub-Action": " "}),
    *sends("admin", "POST /v1/clients", {}, None, *({"name": name} for name in NAMES[:6])),
    Call("admin", "POST /v1/clients", {"name": "f", "groups": ["a b"]}),
    Call("admin", "POST /v1/clients", {"name": "f", "groups": [f"g{n}" for n in range(65)]}),
    Call("admin", "GET /v1/clients/shop"),
    Call("admin", "GET /v1/clients/cafe", keep={"<seen>": "EventHub-Sequence"}),
    *gets("operator", "/v1/clients/shop?zone=<zone>", "/v1/clients/shop", "/v1/clients?zone=none"),
    *gets("admin", "/v1/clients/nobody", "/v1/clients/a%20b", f"/v1/clients/{LONG}"),
    Call("admin", "PATCH /v1/clients/shop", {"groups": ["ops"]}, if_match('"<shop>"')),
    Call("admin", "PATCH /v1/clients/shop", {"groups": ["de"]}, if_match("<shop>")),
    Call("admin", "PATCH /v1/clients/shop", {"groups": ["ops"]}),
    Call("admin", "PATCH /v1/clients/shop", {}),
    Call("admin", "PATCH /v1/clients/shop", {"groups": []}, if_match("<seen>")),
    Call("admin", "PATCH /v1/clients/shop", {"groups": []}, if_match("*")),
    Call("admin", "PATCH /v1/clients/shop", {"groups": []}, if_match("999999")),
    Call("admin", "PATCH /v1/clients/shop", {"groups": []}, ACTION),
    Call("admin", "PATCH /v1/clients/shop", {"name": "other"}),
    Call("admin", "PATCH /v1/clients/nobody", {"groups": []}),
    *gets(
        "admin",
        "/v1/clients",
        "/v1/clients?limit=1",
        "/v1/clients?limit=2&after=cafe",
        "/v1/clients?limit=2&after=gone",
        "/v1/clients?after=tester",
        "/v1/clients?limit=0",
        "/v1/clients?limit=01",
        "/v1/clients?after=%00",
    ),
    *gets("manager", "/v1/clients"),
    *gets("stranger", "/v1/clients", "/v1/clients/shop"),
]
KEYS = [
    Call(
        "admin",
        "POST /v1/clients/shop/keys",
        {"grants": []},
        keep={"<key>": "public_id", "<keychanged>": "changed"},
    ),
    Call(
        "operator",
        "POST /v1/clients/cafe/keys?zone=<zone>",
        {"grants": [EMIT, LISTEN], "label": "till \u2603", "expires_at": "2098-01-01T00:00:00Z"},
        ACTION,
        {"<fullkey>": "public_id"},
    ),
    Call("admin", "POST /v1/clients/depot/keys", {"grants": [EMIT], "expires_at": None}),
    Call("admin", "POST /v1/clients/nobody/keys", {"grants": []}),
    Call("admin", "POST /v1/clients/shop/keys", {}),
    Call("admin", "POST /v1/clients/shop/keys", None),
    Call("ending", "POST /v1/clients/shop/keys", {"grants": [EMIT]}),
    Call("ending", "POST /v1/clients/depot/keys", {"grants": []}),
    *(
        Call("admin", "POST /v1/clients/shop/keys", {"grants": grants})
        for grants in (
            ["emit"],
            [{"action": "emit"}],
            [{"action": "own", "streams": "*"}],
            [{"action": "emit", "streams": "a b"}],
            [{"action": 1, "streams": "*"}],
            [{**EMIT, "zone": "x"}],
            [EMIT] * 101,
        )
    ),
    *(
        Call("admin", "POST /v1/clients/shop/keys", {"grants": [], "expires_at": moment})
        for moment in ("2020-01-01T00:00:00Z", "2098-01-01T00:00:00", "2098-13-01T00:00:00Z", "x")
    ),
    Call("admin", "GET /v1/keys/<key>"),
    Call("operator", "GET /v1/keys/<fullkey>?zone=<zone>"),
    *gets("admin", "/v1/keys/<farkey>", "/v1/keys/<revokedkey>", "/v1/keys/abcdefghijkm"),
    *gets("admin", "/v1/keys/short"),
    Call("admin", "PATCH /v1/keys/<key>", {"label": "new"}, if_match('"<keychanged>"')),
    Call("admin", "PATCH /v1/keys/<key>", {"label": "old"}, if_match('"<keychanged>"')),
    Call("admin", "PATCH /v1/keys/<key>", {"label": "new"}),
    Call("admin", "PATCH /v1/keys/<key>", {"grants": [LISTEN]}, ACTION),
    Call("admin", "PATCH /v1/keys/<key>", {"grants": [LISTEN], "label": ""}),
    Call("admin", "PATCH /v1/keys/<key>", {}),
    Call("admin", "PATCH /v1/keys/<key>", {"expires_at": None}),
    Call("admin", "PATCH /v1/keys/<key>", {"label": "x"}, if_match("one")),
    Call("ending", "PATCH /v1/keys/<key>", {"grants": [EMIT]}),
    Call("admin", "PATCH /v1/keys/<revokedkey>", {"label": "x"}),
    Call("admin", "PATCH /v1/keys/<farkey>", {"label": "x"}),
    Call("admin", "POST /v1/clients", {"name": "keyring"}),
    sql(
        "INSERT INTO api_keys (client_id, public_id, digest, label, grants, created_at, expires_at,"
        " revoked_at) SELECT c.id, p.id, p.id::bytea, p.label, '[]', '2001-02-03T04:05:06Z',"
        " p.expires, p.revoked FROM clients c JOIN zones z ON z.id = c.zone_id, (VALUES"
        " ('aaaaaaaaaaa2', 'first', NULL, NULL), ('bbbbbbbbbbb2', 'over', "
        " '2001-02-04T00:00:00Z'::timestamptz, NULL), ('ccccccccccc2', 'revoked', NULL,"
        " '2001-02-05T00:00:00.5Z'::timestamptz)) AS p (id, label, expires, revoked)"
        " WHERE z.name = '<zone>' AND c.name = 'keyring'"
    ),
    *gets(
        "admin",
        "/v1/clients/shop/keys",
        "/v1/clients/keyring/keys",
        "/v1/clients/keyring/keys?limit=1",
        "/v1/clients/keyring/keys?limit=1&after=aaaaaaaaaaa2",
        "/v1/clients/keyring/keys?limit=2&after=bbbbbbbbbbb2",
        "/v1/clients/keyring/keys?limit=x",
        "/v1/clients/keyring/keys?after=a%20b",
        "/v1/clients/nobody/keys",
        "/v1/keys/bbbbbbbbbbb2",
        "/v1/keys/ccccccccccc2",
    ),
    Call("admin", "DELETE /v1/keys/aaaaaaaaaaa2", headers=if_match("x")),
    Call("admin", "DELETE /v1/keys/aaaaaaaaaaa2", headers=if_match("999999")),
    Call("admin", "DELETE /v1/keys/<fullkey>", headers=if_match("1")),
    Call("admin", "DELETE /v1/keys/aaaaaaaaaaa2", headers=ACTION),
    Call("admin", "DELETE /v1/keys/aaaaaaaaaaa2"),
    Call("admin", "DELETE /v1/keys/<farkey>"),
    Call("admin", "GET /v1/clients/keyring/keys"),
    Call("admin", "POST /v1/clients", {"name": "brief"}, keep={"<brief>": "ETag"}),
    Call("admin", "POST /v1/clients/brief/keys", {"grants": []}, keep={"<briefkey>": "public_id"}),
    Call("admin", "DELETE /v1/clients/brief", headers=if_match("0")),
    Call("admin", "DELETE /v1/clients/brief", headers=if_match("<brief>")),
    Call("admin", "DELETE /v1/clients/brief"),
    Call("admin", "GET /v1/keys/<briefkey>"),
    Call("admin", "POST /v1/clients", {"name": "brief"}),
    Call("operator", "DELETE /v1/clients/brief?zone=<zone>", headers=ACTION),
]
TOKENS = [
    Call(who, "POST /v1/connection-tokens", body)
    for who, body in (
        ("admin", {}),
        ("admin", None),
        ("admin", {"grants": [LISTEN], "lifetime_s": 60}),
        ("admin", {"lifetime_s": 86_400}),
        ("admin", {"lifetime_s": 86_401}),
        ("admin", {"lifetime_s": 0}),
        ("listener", {}),
        ("listener", {"grants": [EMIT]}),
        ("listener", {"grants": []}),
        ("powerless", {}),
        ("operator", {}),
        ("operator", {"grants": [LISTEN], "lifetime_s": 5}),
        ("operator", {"grants": [EMIT]}),
    )
]


def _channel(name: str, mask: Any, *, who: str = "admin", **headers: str) -> Call:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return Call(who, f"PUT /v1/channels/{name}", {"mask": mask}, given)


CHANNELS = [
    _channel("disk", 1),
    _channel("net", "2", If_None_Match="*"),
    Call("admin", "PUT /v1/channels/cpu", {"mask": 1 << 62}, ACTION, {"<cpu>": "ETag"}),
    _channel("disk", "1"),
    _channel("disk", 1, If_None_Match="*"),
    _channel("cpu", str(1 << 62), If_Match="<cpu>"),
    _channel("cpu", 4, If_Match="<cpu>"),
    _channel("cpu", str(1 << 62), If_Match="1"),
    _channel("new", 8, If_Match="1"),
    _channel("new", 8, If_Match="x"),
    _channel("new", 8, If_None_Match="1"),
    Call("admin", "PUT /v1/channels/new", {"mask": 8}, {**NEW, **if_match("1")}),
    _channel("new", 1),
    _channel("disk", 8),
    _channel("default", 8),
    _channel("a%20b", 8),
    _channel(LONG, 8),
    _channel("new", 8, who="emitter"),
    *(_channel("new", mask) for mask in (0, 3, -1, 1 << 63, "0x1", "", "9" * 40, 1.0, True, None)),
    *sends("admin", "PUT /v1/channels/new", {}, None, {"mask": 8, "bit": 3}),
    _channel("ops", "8", who="operator"),
    *gets("admin", "/v1/channels", "/v1/channels?limit=1"),
    *gets("powerless", "/v1/channels"),
    *gets("operator", "/v1/channels", "/v1/channels?zone=<zone>"),
]
LOGIN = {"username": "operator", "password": "x"}
SESSION = [
    *gets("operator", "/v1/session", "/v1/session?zone=<zone>"),
    *gets("admin", "/v1/session"),
    *gets("nobody", "/v1/session"),
    sql("DELETE FROM login_attempts"),
    Call("nobody", "POST /v1/session", {"username": "operator", "password": "<password>"}),
    *sends("nobody", "POST /v1/session", {"username": "nobody", "password": "x"}, {}, None),
    *sends("nobody", "POST /v1/session", {"username": "operator"}, {**LOGIN, "username": "\u0000"}),
    *sends("nobody", "POST /v1/session", {**LOGIN, "username": "u" * 151}, {**LOGIN, "next": "/"}),
    Call("nobody", "POST /v1/session", {**LOGIN, "password": "p" * 5_000}),
    Call("nobody", "POST /v1/session", {**LOGIN, "password": "p" * 1_025}),
    sql("UPDATE login_attempts SET attempts = 100 WHERE subject LIKE 'user:%'"),
    Call("nobody", "POST /v1/session", LOGIN),
    sql("UPDATE login_attempts SET attempts = 100"),
    Call("nobody", "POST /v1/session", {**LOGIN, "username": "other"}),
    sql("DELETE FROM login_attempts"),
    Call("nobody", "DELETE /v1/session"),
    Call("admin", "DELETE /v1/session"),
    Call("operator", "DELETE /v1/session", headers={"X-CSRFToken": ""}),
]
ADDRESSES = [
    Call("admin", "POST /v1/clients", {"name": "bound"}),
    *(
        Call("admin", "POST /v1/clients/bound/keys", {"grants": [], "allowed_addresses": value})
        for value in (["10.1.0.0/16", "::1"], None, [], ["10.1.0.1/16"], "::1", [1], ["::1"] * 65)
    ),
    Call("admin", "PATCH /v1/keys/<key>", {"allowed_addresses": ["192.0.2.7"]}, ACTION),
    Call("admin", "PATCH /v1/keys/<key>", {"allowed_addresses": ["192.0.2.7"]}),
    Call("admin", "PATCH /v1/keys/<key>", {"allowed_addresses": None}),
]
ANN = {"name": "ann", "role": "viewer"}
SETUP = {"username": "ann", "setup_token": "<setup>", "password": "x"}
FIRST, SECOND = "four odd words here", "five more odd words here"
# of her first login
COOKIES = {"Cookie": "<cookies>", "X-CSRFToken": "<csrf>"}
SELF_SERVICE = [
    Call("operator", "POST /v1/operators", ANN, keep={"<setup>": "setup_token"}),
    *gets("operator", "/v1/operators", "/v1/operators?limit=1"),
    Call("operator", "POST /v1/operators/ann/setup-token", {}, keep={"<next>": "setup_token"}),
    *sends("nobody", "POST /v1/session/setup", SETUP, {**SETUP, "setup_token": "<next>"}, {}),
    Call(
        *("nobody", "POST /v1/session/setup"),
        {**SETUP, "setup_token": "<next>", "password": FIRST},
        keep={"<cookies>": "Set-Cookie", "<csrf>": "csrf_token"},
    ),
    Call("nobody", "POST /v1/session/password", {}, COOKIES),
    Call(
        *("nobody", "POST /v1/session/password"),
        {"password": FIRST, "new_password": SECOND},
        COOKIES,
    ),
    Call("operator", "DELETE /v1/operators/ann"),
    sql("DELETE FROM login_attempts"),
]
NEW_OPERATOR = {"name": "eve", "role": "viewer", "password": "four odd words here"}
OPERATORS = [
    Call("operator", "POST /v1/operators", NEW_OPERATOR, ACTION, {"<eve>": "ETag"}),
    Call("operator", "POST /v1/operators", NEW_OPERATOR),
    *sends("operator", "POST /v1/operators", {}, None, {**NEW_OPERATOR, "role": "root"}),
    Call("admin", "POST /v1/operators", NEW_OPERATOR),
    Call("operator", "GET /v1/operators/eve"),
    Call("operator", "GET /v1/operators/nobody"),
    Call("admin", "GET /v1/operators"),
    Call("operator", "PATCH /v1/operators/eve", {"role": "operator"}, if_match("<eve>")),
    Call("operator", "PATCH /v1/operators/eve", {"role": "admin"}, if_match("<eve>")),
    Call("operator", "PATCH /v1/operators/eve", {"active": False}, ACTION),
    Call("operator", "PATCH /v1/operators/operator", {"role": "viewer"}),
    Call("operator", "DELETE /v1/operators/operator"),
    Call("operator", "DELETE /v1/operators/eve", headers=ACTION),
    Call("operator", "DELETE /v1/operators/eve"),
    Call("nobody", "POST /v1/session/setup", {**LOGIN, "setup_token": "x"}),
    Call("operator", "POST /v1/session/password", {"password": "x", "new_password": "y"}),
    Call("admin", "POST /v1/session/password", {"password": "x", "new_password": "y"}),
    sql("DELETE FROM login_attempts"),
]
CALLS = [
    *ZONES,
    *CLIENTS,
    *KEYS,
    *ADDRESSES,
    *TOKENS,
    *CHANNELS,
    *SESSION,
    *OPERATORS,
    *SELF_SERVICE,
]
