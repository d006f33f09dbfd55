"""Calls that send deliveries again, verify endpoints and set the limits of tenants."""

from tests.acceptance.recorded.call import Call, gets, sends, sql

_DELIVERY = "POST /v1/deliveries/<delivery>"
CALLS = [
    *gets(
        "admin", "/v1/dead-letters", "/v1/dead-letters?state=dropped", "/v1/dead-letters?limit=0"
    ),
    *gets("emitter", "/v1/dead-letters"),
    # the deliveries of the endpoint, the newest first: cancelled, expired, pending
    Call("admin", "GET /v1/deliveries?endpoint=<endpoint>", keep={"<failed>": "items.4.id"}),
    Call("admin", "POST /v1/deliveries/<failed>/skip", {}),
    Call("admin", "POST /v1/deliveries/<failed>/discard", {}),
    Call("admin", "POST /v1/deliveries/<failed>/discard", {}),
    Call("admin", "POST /v1/deliveries/<failed>/resend", {}),
    Call("admin", "POST /v1/deliveries/<failed>/skip", {}),
    *sends("admin", f"{_DELIVERY}/resend", {"force": 1}, {"new_id": True}, {"force": True}),
    *sends("admin", "POST /v1/endpoints/<endpoint>/recover/preview", {}, {"since": "x"}),
    *sends("admin", "POST /v1/endpoints/<endpoint>/recover", {"rate": 0}, {"outcome": "status"}),
    *sends(
        "admin",
        "POST /v1/replays/preview",
        {"endpoint": 999_999, "streams": ["orders"]},
        {"streams": ["orders"]},
        {"endpoint": "<endpoint>", "streams": ["orders"], "type": "order.placed"},
    ),
    Call(
        "admin",
        "POST /v1/replays",
        {"endpoint": "<endpoint>", "streams": ["orders"], "rate": 5},
        keep={"<replay>": "id"},
    ),
    Call("admin", "POST /v1/replays", {"endpoint": "<endpoint>", "streams": ["nowhere"]}),
    Call("admin", "POST /v1/replays/<replay>/resume", {}),
    Call("admin", "POST /v1/replays/<replay>/pause", {}),
    Call("admin", "POST /v1/replays/<replay>/resume", {}),
    Call("admin", "POST /v1/replays/<replay>/cancel", {}),
    Call("admin", "POST /v1/replays/<replay>/pause", {}),
    *gets("admin", "/v1/replays", "/v1/replays/<replay>", "/v1/replays/999999"),
    *gets("peer", "/v1/replays/<replay>"),
    sql("DROP TABLE deliveries_recorded"),  # an example makes its own partition
    sql("DROP TABLE attempts_recorded, listeners_recorded"),
    *sends(
        "admin",
        "POST /v1/endpoints/<endpoint>/examples",
        {"domain": "shop", "type": "order.placed"},
        {"domain": "shop"},
    ),
    *sends("admin", "POST /v1/endpoints/<second>/verify", {}),
    Call("admin", "PATCH /v1/endpoints/<second>", {"handshake": "challenge"}),
    *sends("admin", "POST /v1/endpoints/<second>/verify", {}),
    *gets("admin", "/v1/limits", "/v1/limits?client=peer", "/v1/limits?client=nobody"),
    *gets("peer", "/v1/limits", "/v1/limits?client=tester"),
    *sends("operator", "PUT /v1/limits?zone=<zone>", {"endpoints": -1}, {"events_per_s": 1_000}),
    *sends("operator", "PUT /v1/limits?zone=<zone>&client=peer", {"endpoints": 3}, {}),
    Call("operator", "PUT /v1/limits?zone=<zone>", {}),
    Call("admin", "PUT /v1/limits", {}),
]
