"""Bad input of the routes of registrations and endpoints, and to clients that end; what every route
must refuse is tried with the other routes of the management API.
"""

from typing import Any

import pytest

from tests.acceptance.bad_inputs import Bad, World

pytestmark = pytest.mark.usefixtures("untouched")
REGISTRATIONS = "/v1/registrations"
ONE = f"{REGISTRATIONS}/{{registration}}"
ENDPOINTS = "/v1/endpoints"
SECRET = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5"
ENDPOINT = f"{ENDPOINTS}/{{endpoint}}"
WANTED = {"streams": ["orders"]}
URL = "https://hooks.example/"
# counts 1,300 of the 5,000 that a client's filters may
EXPENSIVE = {**WANTED, "language": "predicate", "filter": f'(wildcard note "*{"ab*" * 1_300}")'}


def bad(name: str, route: str, path: str, outcome: str, at: str = "", **more: Any) -> Bad:
    status, code = outcome.split()
    index = {"index": more.pop("index")} if "index" in more else {}
    return Bad(name, route, path, int(status), code, {**index, **({"field": at} if at else {})},
               **more)  # fmt: skip


def register(name: str, outcome: str, at: str, *, key: str = "admin", **fields: Any) -> Bad:
    body = {name: value for name, value in {**WANTED, **fields}.items() if value != "<nothing>"}
    return bad(name, f"POST {REGISTRATIONS}", REGISTRATIONS, outcome, at, body=body, key=key)


def several(name: str, outcome: str, at: str, index: int, *items: Any) -> Bad:
    return bad(f"list: {name}", f"POST {REGISTRATIONS}", REGISTRATIONS, outcome, at,
               index=index, body=[*items])  # fmt: skip


def change(name: str, outcome: str, at: str, **fields: Any) -> Bad:
    path = f"{REGISTRATIONS}/<registration>"
    return bad(name, f"PATCH {ONE}", path, outcome, at, body=fields)


def endpoint(name: str, outcome: str, at: str, **fields: Any) -> Bad:
    return bad(name, f"POST {ENDPOINTS}", ENDPOINTS, outcome, at, body={"url": URL, **fields})


def change_endpoint(name: str, outcome: str, at: str, **fields: Any) -> Bad:
    path = f"{ENDPOINTS}/<endpoint>"
    return bad(name, f"PATCH {ENDPOINT}", path, outcome, at, body=fields)


NEW = (
    register("no streams", "400 missing_field", "streams", streams="<nothing>"),
    register("streams null", "400 invalid_field", "streams", streams=None),
    register("streams empty", "400 invalid_field", "streams", streams=[]),
    register("streams a text", "400 invalid_field", "streams", streams="orders"),
    register("stream a number", "400 invalid_field", "streams.1", streams=["orders", 7]),
    register("stream with NUL", "400 invalid_name", "streams.0", streams=["a\0b"]),
    register("stream too long", "400 field_too_long", "streams.0", streams=["a" * 201]),
    register("65 streams", "400 field_too_long", "streams", streams=["orders"] * 65),
    register("a number beyond 64 bits", "400 number_out_of_range", "", attributes={"n": 1 << 64}),
    register("unknown language", "400 unknown_language", "language", language="sql", filter="x"),
    register("language a number", "400 invalid_field", "language", language=7, filter="x"),
    register("a filter without its language", "400 invalid_field", "language", filter="(= a 1)"),
    register("no filter", "400 missing_field", "filter", language="predicate"),
    register("pairs beside a filter", "400 invalid_field", "type", language="predicate",
             filter="(= a 1)", type="order"),
    register("a text in no language", "400 filter_syntax", "filter", language="predicate",
             filter="(= a"),
    register("a filter of another language", "400 filter_syntax", "filter", language="ready",
             filter="(= a 1)"),
    register("an object for a text", "400 invalid_field", "filter", language="ready", filter={}),
    register("a bad pattern", "400 invalid_field", "filter.detail.a", language="eventbridge",
             filter={"detail": {"a": "b"}}),
    register("a filter too large", "422 filter_too_large", "filter", language="predicate",
             filter=f"(= a '{'x' * 20_000})"),
    register("unknown stream", "404 unknown_stream", "streams.0", streams=["nowhere"]),
    register("another zone's stream", "404 unknown_stream", "streams.0", streams=["theirs"]),
    register("no grant", "403 forbidden", "streams.0", streams=["secret"], key="listener"),
    register("an emitter", "403 forbidden", "streams.0", key="emitter"),
    register("a listener on system", "403 forbidden", "streams.0", streams=["system"],
             key="listener"),
    register("domain empty", "400 invalid_field", "domain", domain=""),
    register("domain too long", "400 field_too_long", "domain", domain="x" * 1_025),
    register("type a list", "400 invalid_field", "type", type=["a"]),
    register("attributes a list", "400 invalid_field", "attributes", attributes=[]),
    register("nested pair", "400 invalid_field", "attributes.a", attributes={"a": {"b": 1}}),
    register("65 pairs", "400 field_too_long", "attributes",
             attributes={str(n): n for n in range(65)}),
    register("body", "400 body_not_filterable", "body", body={"a": 1}),
    register("unknown field", "400 unknown_field", "colour", colour="red"),
    *(register(f"endpoint {value!r}", "400 invalid_field", "endpoint", endpoint=value)
      for value in (0, -1, 1.5, "1", True, [], (1 << 64) - 1)),
    register("no such endpoint", "404 unknown_endpoint", "endpoint", endpoint=10**15),
    register("endpoint and callback", "400 invalid_field", "callback", endpoint=1, callback=URL),
    *(register(f"callback {value!r}", "400 invalid_field", "callback", callback=value)
      for value in (1, "", "x", "ftp://a.example/", "http://u:p@a.example/", "http://a.example/#x",
                    "http://a b/", "http://127.1/", "http://", "javascript:alert(1)")),
    register("callback too long", "400 field_too_long", "callback", callback=URL + "x" * 2_048),
    *(register(f"callback {value}", "400 refused_address", "callback", callback=value)
      for value in ("http://10.0.0.1/", "http://[::1]/", "http://169.254.169.254/",
                    "http://[::ffff:192.168.0.1]/")),
    register("client a number", "400 invalid_field", "client", client=1),
    register("client no name", "400 invalid_name", "client", client="a b"),
    register("no such client", "404 not_found", "client", client="nobody"),
    register("another client", "403 forbidden", "", client="them", key="listener"),
    register("no client", "400 missing_field", "client", key="operator"),
    several("empty", "400 invalid_field", "", 0)._replace(at={}),
    several("no object", "400 invalid_field", "", 1, WANTED, "x"),
    several("a list in it", "400 invalid_field", "", 0, [WANTED]),
    several("one bad", "404 unknown_stream", "streams.1", 2, WANTED, WANTED,
            {"streams": ["orders", "nowhere"]}),
    several("no endpoint", "404 unknown_endpoint", "endpoint", 1, WANTED,
            {**WANTED, "endpoint": 10**15}),
    several("two clients", "400 invalid_field", "client", 1, WANTED, {**WANTED, "client": "them"}),
    several("too costly together", "409 filters_too_costly", "filter", 3, *[EXPENSIVE] * 4),
    several("too many", "413 too_many_registrations", "", 0, *[{}] * 1_001)._replace(at={}),
)  # fmt: skip
CHANGED = (
    change("streams null", "400 invalid_field", "streams", streams=None),
    change("unknown stream", "404 unknown_stream", "streams.1", streams=["orders", "nowhere"]),
    change("type empty", "400 invalid_field", "type", type=""),
    change("nested pair", "400 invalid_field", "attributes.a", attributes={"a": []}),
    change("body", "400 body_not_filterable", "body_base64", body_base64=""),
    change("a callback", "400 unknown_field", "callback", callback=URL),
    change("the client", "400 unknown_field", "client", client="them"),
    change("the version", "400 unknown_field", "version", version=7),
    change("no such endpoint", "404 unknown_endpoint", "endpoint", endpoint=10**15),
    change("an endpoint's text", "400 invalid_field", "endpoint", endpoint="1"),
)
IDS = tuple(
    bad(f"id {id}", f"{method} {ONE}", f"{REGISTRATIONS}/{id}",
        "404 unknown_registration", "registration", body={} if method == "PATCH" else None,
        key=key)
    for method in ("GET", "PATCH", "DELETE")
    for id, key in (("0", "admin"), ("9" * 18, "admin"), ("9" * 30, "admin"), ("-1", "admin"),
                        ("1.0", "admin"), ("%D9%A1", "admin"), ("<farregistration>", "admin"),
                        ("<theirregistration>", "listener"))
)  # fmt: skip
LISTED = tuple(
    bad(f"query {query}", f"GET {path}", f"{path}?{query}", outcome, query.split("=")[0], **more)
    for path, query, outcome, more in (
        (REGISTRATIONS, "limit=0", "400 invalid_field", {}),
        (REGISTRATIONS, "after=x", "400 invalid_field", {}),
        (REGISTRATIONS, "after=%00", "400 invalid_name", {}),
        (REGISTRATIONS, "after=" + "9" * 19, "400 invalid_field", {}),
        (REGISTRATIONS, "client=nobody", "404 not_found", {}),
        (REGISTRATIONS, "client=%00", "400 invalid_name", {}),
        (REGISTRATIONS, "stream=a%20b", "400 invalid_name", {}),
        (REGISTRATIONS, "endpoint=one", "400 invalid_field", {}),
        (REGISTRATIONS, "endpoint=-1", "400 invalid_field", {}),
        (ENDPOINTS, "limit=1001", "400 invalid_field", {}),
        (ENDPOINTS, "after=x", "400 invalid_field", {}),
        (ENDPOINTS, "client=nobody", "404 not_found", {}),
        (ENDPOINTS, "url=x", "400 unknown_field", {}),
    )
)
OTHERS = (
    bad("another client's", f"GET {REGISTRATIONS}", f"{REGISTRATIONS}?client=them",
        "403 forbidden", key="listener"),
    bad("another client's", f"GET {ENDPOINTS}", f"{ENDPOINTS}?client=them", "403 forbidden",
        key="listener"),
    bad("no step", f"GET {ENDPOINT}/statistics", f"{ENDPOINTS}/<endpoint>/statistics?step=day",
        "400 invalid_field", "step"),
    bad("no manager", "GET /v1/overview", "/v1/overview", "403 forbidden", key="listener"),
    bad("no manager", "DELETE /v1/clients/{client}", "/v1/clients/them", "403 forbidden",
        key="manager"),
    bad("nobody", "DELETE /v1/clients/{client}", "/v1/clients/nobody", "404 not_found", "client"),
)  # fmt: skip
PLACES = (
    bad("no URL", f"POST {ENDPOINTS}", ENDPOINTS, "400 missing_field", "url", body={}),
    endpoint("URL a number", "400 invalid_field", "url", url=1),
    endpoint("URL with NUL", "400 invalid_field", "url", url="https://a.example/\0"),
    endpoint("URL with a user", "400 invalid_field", "url", url="https://u@a.example/"),
    endpoint("URL too long", "400 field_too_long", "url", url=URL + "x" * 2_048),
    endpoint("private address", "400 refused_address", "url", url="http://192.168.0.1/"),
    endpoint("local name", "400 refused_address", "url", url="http://[::]/"),
    endpoint("description with NUL", "400 invalid_field", "description", description="\0"),
    endpoint("description too long", "400 field_too_long", "description", description="x" * 1_025),
    endpoint("ordered a text", "400 invalid_field", "ordered", ordered="yes"),
    endpoint("secret short", "400 invalid_field", "secret", secret="whsec_YQ=="),
    endpoint("secret no base64", "400 invalid_field", "secret", secret="whsec_*"),
    endpoint("no such signature", "400 invalid_field", "signature", signature="v2"),
    *(bad(name, f"POST {ENDPOINT}/secrets", f"{ENDPOINTS}/<endpoint>/secrets",
          "400 invalid_field", at, body=body)
      for name, at, body in (("secret short", "secret", {"secret": "whsec_YQ=="}),
                             ("secret of v1a", "secret", {"signature": "v1a", "secret": SECRET}),
                             ("overlap negative", "overlap_s", {"overlap_s": -1}),
                             ("overlap too long", "overlap_s", {"overlap_s": 10**9}))),
    bad("current secret", f"DELETE {ENDPOINT}/secrets/{{secret}}",
        f"{ENDPOINTS}/<bound>/secrets/<secret>", "409 secret_in_use", "secret"),
    bad("credentials for another host", f"PATCH {ENDPOINT}", f"{ENDPOINTS}/<bound>",
        "409 credentials_bound", "headers", body={"url": "https://other.example/"}),
    *(bad(f"endpoint {number}", f"{method} {ENDPOINT}/secrets{more}",
          f"{ENDPOINTS}/{number}/secrets{path}", "404 unknown_endpoint", "endpoint",
          body={} if method == "POST" else None, key=key)
      for method, more, path in (("GET", "", ""), ("POST", "", ""),
                                 ("DELETE", "/{secret}", "/1"))
      for number, key in (("0", "admin"), ("<farendpoint>", "admin"),
                          ("<theirendpoint>", "listener"))),
    endpoint("client no name", "400 invalid_name", "client", client="a b"),
    endpoint("no such client", "404 not_found", "client", client="nobody"),
    endpoint("no client", "400 missing_field", "client")._replace(key="operator"),
    endpoint("another client", "403 forbidden", "", client="them")._replace(key="listener"),
    change_endpoint("URL null", "400 invalid_field", "url", url=None),
    change_endpoint("private address", "400 refused_address", "url", url="http://10.1.2.3/"),
    change_endpoint("enabled a number", "400 invalid_field", "enabled", enabled=1),
    change_endpoint("the reason", "400 unknown_field", "reason", reason="gone"),
    change_endpoint("the secret", "400 unknown_field", "secret", secret="whsec_"),
    change_endpoint("the client", "400 unknown_field", "client", client="them"),
    endpoint("no such handshake", "400 invalid_field", "handshake", handshake="hello"),
    bad("no handshake", f"POST {ENDPOINT}/verify", f"{ENDPOINTS}/<endpoint>/verify",
        "409 no_handshake", "", body={}),
    bad("in use", f"DELETE {ENDPOINT}", f"{ENDPOINTS}/<endpoint>", "409 endpoint_in_use",
        "endpoint"),
    *(bad(f"endpoint {number}", f"{method} {ENDPOINT}", f"{ENDPOINTS}/{number}",
          "404 unknown_endpoint", "endpoint", body={} if method == "PATCH" else None, key=key)
      for method in ("GET", "PATCH", "DELETE")
      for number, key in (("0", "admin"), ("9" * 30, "admin"), ("x", "admin"),
                          ("<farendpoint>", "admin"), ("<theirendpoint>", "listener"))),
)  # fmt: skip
CASES = (*NEW, *CHANGED, *IDS, *LISTED, *OTHERS, *PLACES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.route} {case.name}")
def test_bad_request_of_interest_is_refused_with_its_place(world: World, case: Bad) -> None:
    world.check(case)
