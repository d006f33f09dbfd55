"""Calls about endpoints and groups of registrations."""

from tests.acceptance.recorded.access import ACTION, NAMES
from tests.acceptance.recorded.call import Call, gets, if_match, sends, sql

URL = "https://hooks.example/"
SECRET = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5"
TABLE = {
    "kind": "postgresql",
    "url": "postgresql://db.example/shop",
    "settings": {"table": "events"},
    "authentication": {"type": "basic", "username": "hub", "password": "word"},
}
BUCKET = {
    "kind": "s3",
    "url": "https://s3.example/bucket",
    "settings": {"region": "eu-north-1"},
    "authentication": {"type": "access_key", "access_key_id": "a", "secret_access_key": "word"},
}
ENDPOINTS = [
    Call("admin", "POST /v1/endpoints", {"url": URL}, ACTION, {"<endpoint>": "id"}),
    Call(
        "admin",
        "POST /v1/endpoints",
        {
            "url": "http://hooks.example:8080/caf%C3%A9?a=b",
            "description": "caf\u00e9 \u2603",
            "secret": SECRET,
            "ordered": True,
            "format": "cloudevents_binary",
            "client": "tester",
        },
        keep={"<second>": "id", "<seen>": "ETag"},
    ),
    Call("peer", "POST /v1/endpoints", {"url": URL}, keep={"<theirendpoint>": "id"}),
    Call("stranger", "POST /v1/endpoints", {"url": URL}, keep={"<farendpoint>": "id"}),
    Call("operator", "POST /v1/endpoints?zone=<zone>", {"url": URL, "client": "peer"}),
    Call("operator", "POST /v1/endpoints?zone=<zone>", {"url": URL}),
    Call("admin", "POST /v1/endpoints", {"url": URL, "client": "peer"}),
    Call("peer", "POST /v1/endpoints", {"url": URL, "client": "tester"}),
    Call("emitter", "POST /v1/endpoints", {"url": URL}),
    Call("admin", "POST /v1/endpoints", {"url": URL, "client": "nobody"}),
    *(
        Call("admin", "POST /v1/endpoints", {"url": url})
        for url in (
            "ftp://a.example/",
            "http://u:p@a.example/",
            "http://a.example/#x",
            "http://a b/",
            "http://127.1.1.1/",
            "http://[::1]/",
            "https://a.example/" + "x" * 2_048,
            "x",
        )
    ),
    *sends("admin", "POST /v1/endpoints", {}, None, {"url": URL, "secret": "whsec_YQ=="}),
    *sends(
        "admin",
        "PATCH /v1/endpoints/<endpoint>",
        {"expires_at": "2100-01-01T00:00:00Z", "format": "mcp"},
        {"expires_at": None, "format": "native"},
        {"expires_at": "2000-01-01T00:00:00Z"},
        {"expires_at": "2100-01-01"},
        {"expires_at": 1},
    ),
    Call("admin", "PATCH /v1/endpoints/<second>", {"url": "https://b.example/"}, if_match("1")),
    Call(
        "admin", "PATCH /v1/endpoints/<second>", {"url": "https://b.example/"}, if_match("<seen>")
    ),
    *sends(
        "admin",
        "PATCH /v1/endpoints/<second>",
        {"url": "https://b.example/"},
        {"description": ""},
        {"ordered": False},
        {"format": "cloudevents_structured"},
        {"enabled": False},
        {"enabled": False},
        {"enabled": True},
        {},
        {"url": "http://10.0.0.1/"},
        {"secret": SECRET},
        {"client": "peer"},
    ),
    Call("peer", "PATCH /v1/endpoints/<theirendpoint>", {"enabled": False}, ACTION),
    Call("admin", "PATCH /v1/endpoints/<second>", {"ordered": True}, if_match("x")),
    Call("operator", "PATCH /v1/endpoints/<second>?zone=<zone>", {"description": "second"}),
    sql(
        "INSERT INTO endpoint_health VALUES (<second>, '2001-02-03T04:05:06Z', 'status', 503,"
        " '2001-02-01T00:00:00Z', '2001-02-02T00:00:00Z')"
    ),
    *gets("admin", "/v1/endpoints/<endpoint>", "/v1/endpoints/<second>"),
    *gets("admin", "/v1/endpoints/<theirendpoint>"),
    *gets("admin", "/v1/endpoints/<second>/secrets"),
    *gets(
        "admin",
        "/v1/endpoints/<second>/statistics",
        "/v1/endpoints/<second>/statistics?step=day",
        "/v1/endpoints/<farendpoint>/statistics",
    ),
    *sends("admin", "PATCH /v1/endpoints/<second>", {"signature": "v2"}, {"signature": "both"}),
    Call(
        "admin",
        "GET /v1/endpoints/<endpoint>/secrets",
        keep={"<previous>": "items.0.id"},
    ),
    *sends(
        "admin",
        "POST /v1/endpoints/<endpoint>/secrets",
        {"secret": "whsec_YQ=="},
        {"overlap_s": -1},
        {"signature": "v1a", "secret": SECRET},
        {"signature": "v1a"},
        {"secret": SECRET},
    ),
    Call("admin", "POST /v1/endpoints/<endpoint>/secrets", {}, if_match("1")),
    Call("peer", "POST /v1/endpoints/<endpoint>/secrets", {}),
    *gets("admin", "/v1/endpoints/<endpoint>/secrets", "/v1/endpoints/<farendpoint>/secrets"),
    *(
        Call("admin", f"DELETE /v1/endpoints/<endpoint>/secrets/{number}")
        for number in ("<previous>", "<previous>", "x")
    ),
    *(
        Call(who, f"{method} /v1/endpoints/{number}", body)
        for method, body in (("GET", None), ("PATCH", {}), ("DELETE", None))
        for who, number in (
            ("admin", "0"),
            ("admin", "x"),
            ("admin", "9" * 30),
            ("admin", "<farendpoint>"),
            ("peer", "<endpoint>"),
        )
    ),
    *gets(
        "admin",
        "/v1/endpoints",
        "/v1/endpoints?limit=1",
        "/v1/endpoints?limit=1&after=<endpoint>",
        "/v1/endpoints?limit=2&after=<second>",
        "/v1/endpoints?client=peer",
        "/v1/endpoints?client=nobody",
        "/v1/endpoints?client=a%20b",
        "/v1/endpoints?limit=0",
        "/v1/endpoints?after=x",
        "/v1/endpoints?url=x",
    ),
    *gets("peer", "/v1/endpoints", "/v1/endpoints?client=tester"),
    *gets("emitter", "/v1/endpoints"),
    *gets("operator", "/v1/endpoints?zone=<zone>", "/v1/endpoints"),
    # sinks; a created one shows a digest that each hub has of its own
    *sends(
        "admin",
        "POST /v1/endpoints",
        {"kind": "s3", "url": BUCKET["url"]},
        {**BUCKET, "batch": None},
        {**TABLE, "url": "postgresql://me:word@db.example/shop"},
        {**TABLE, "headers": {"x-a": "b"}},
        {"url": URL, "settings": {}},
    ),
]
GROUPS = [
    Call("admin", "POST /v1/registration-groups", {"name": "night"}, keep={"<group>": "id"}),
    Call(
        "admin",
        "POST /v1/registration-groups",
        {"name": "day", "suspended": True, "client": "tester"},
        ACTION,
        {"<day>": "id", "<daytag>": "ETag"},
    ),
    Call("peer", "POST /v1/registration-groups", {"name": "night"}, keep={"<theirgroup>": "id"}),
    Call("operator", "POST /v1/registration-groups?zone=<zone>", {"name": "x", "client": "shop"}),
    Call("operator", "POST /v1/registration-groups?zone=<zone>", {"name": "x"}),
    Call("admin", "POST /v1/registration-groups", {"name": "night"}),
    Call("peer", "POST /v1/registration-groups", {"name": "x", "client": "tester"}),
    Call("admin", "POST /v1/registration-groups", {"name": "x", "client": "nobody"}),
    Call("emitter", "POST /v1/registration-groups", {"name": "x"}),
    *sends("admin", "POST /v1/registration-groups", {}, *({"name": name} for name in NAMES[:6])),
    Call("admin", "PATCH /v1/registration-groups/<day>", {"suspended": False}, if_match("1")),
    Call(
        "admin", "PATCH /v1/registration-groups/<day>", {"suspended": False}, if_match("<daytag>")
    ),
    Call("admin", "PATCH /v1/registration-groups/<day>", {"suspended": False}, ACTION),
    Call("admin", "PATCH /v1/registration-groups/<day>", {}),
    Call("admin", "PATCH /v1/registration-groups/<day>", {"name": "x"}),
    Call("admin", "PATCH /v1/registration-groups/<day>", {"suspended": True}, if_match("x")),
    Call("operator", "PATCH /v1/registration-groups/<day>?zone=<zone>", {"suspended": True}),
    *gets("admin", "/v1/registration-groups/<group>", "/v1/registration-groups/<day>"),
    *(
        Call(who, f"{method} /v1/registration-groups/{number}", body)
        for method, body in (("GET", None), ("PATCH", {}), ("DELETE", None))
        for who, number in (("admin", "0"), ("admin", "x"), ("peer", "<group>"))
    ),
    *gets(
        "admin",
        "/v1/registration-groups",
        "/v1/registration-groups?limit=1",
        "/v1/registration-groups?limit=1&after=<group>",
        "/v1/registration-groups?limit=9&after=<day>",
        "/v1/registration-groups?client=peer",
        "/v1/registration-groups?client=nobody",
        "/v1/registration-groups?limit=0",
        "/v1/registration-groups?after=x",
        "/v1/registration-groups?name=night",
    ),
    *gets("peer", "/v1/registration-groups", "/v1/registration-groups?client=tester"),
    *gets("operator", "/v1/registration-groups?zone=<zone>"),
]
CALLS = [*ENDPOINTS, *GROUPS]
