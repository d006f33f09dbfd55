"""Two zones and three clients, and every route with a request of one for a resource of another.

`VAULT` names the owner's resources: its markers are in events, states, filters, URLs, labels
and names, so that a response that contains one has leaked something.
"""

from typing import Any, NamedTuple

from tests.acceptance.delivery.test_deliveries import finished
from tests.live import Answer, LiveHub
from tests.sink import Sink

SECRET = "sesame-47b1"  # in what the owner stored: events, states, filters, URLs, labels, schemas
NAME = "vault"  # in the names of the owner's streams, clients, channels, groups and types
ACTIONS = ("emit", "listen", "manage")
# Routes whose responses contain nothing of a zone, for any caller.
ZONELESS = frozenset(
    {
        *("GET /", "GET /console", "GET /console/", "GET /console/{path}"),
        *("GET /docs/api", "GET /docs/errors", "GET /docs/openapi.json", "GET /docs/asyncapi.json"),
        *("GET /healthz", "GET /readyz", "GET /metrics"),
        *("GET /v1/languages", "GET /v1/session", "POST /v1/session", "DELETE /v1/session"),
        *("POST /v1/session/setup", "POST /v1/session/password"),
        *("GET /v1/ws", "WS ack", "WS forget", "WS hello", "WS ping", "WS pong", "WS confirm"),
        *("WS resend", "WS disconnect", "WS credit", "WS nak"),
        "POST /v1/webhooks/{token}",
        "WS stop",  # these name a listen of the same socket
    }
)


class Row(NamedTuple):
    """One request for what is the owner's; marks such as `<delivery>` stand for its ids.

    `may`: which of the owner's zone are answered: keys of the owner's client with one action
    (emit, listen, manage), `peer`, another client that may listen to everything. Any other caller
    is refused, or, with `own`, is answered from what is its own. A stranger, who may do everything
    in another zone, always is.
    """

    route: str
    path: str
    may: str = ""
    own: bool = False
    body: Any = None
    operator: bool = False  # the owner's own keys are refused too


STREAM = "/v1/streams/<stream>"
FILTER = {"attributes": {"code": SECRET}}
READS = (
    Row("GET /v1/boot", "/v1/boot", "emit listen manage peer", own=True),
    Row("GET /v1/audit", "/v1/audit", "manage", own=True),
    Row("GET /v1/audit", "/v1/audit?type=stream.*", "manage", own=True),
    Row("GET /v1/audit/{sequence}", "/v1/audit/<system>", "manage"),
    Row("GET /v1/overview", "/v1/overview", "manage", own=True),
    Row("GET /v1/zones", "/v1/zones", operator=True),
    Row("GET /v1/zones/{name}", "/v1/zones/<zone>", operator=True),
    Row("GET /v1/operators", "/v1/operators", operator=True),
    Row("GET /v1/operators/{operator}", "/v1/operators/<operator>", operator=True),
    Row("GET /v1/storage", "/v1/storage", "manage", own=True),
    Row("GET /v1/members", "/v1/members", operator=True),
    Row("GET /v1/monitoring", "/v1/monitoring", "manage", own=True),
    Row("GET /v1/presence", "/v1/presence", "manage", own=True),
    Row("GET /v1/channels", "/v1/channels", "emit listen manage peer", own=True),
    Row("GET /v1/clients", "/v1/clients", "manage", own=True),
    Row("GET /v1/clients", "/v1/clients?after=<client>", "manage", own=True),
    Row("GET /v1/clients/{client}", "/v1/clients/<client>", "manage"),
    Row("GET /v1/clients/{client}/keys", "/v1/clients/<client>/keys", "manage"),
    Row("GET /v1/clients/{client}/listeners", "/v1/clients/<client>/listeners", "listen", own=True),
    Row("GET /v1/clients/{client}/listeners", "/v1/clients/<client>/listeners?stream=<stream>",
        "listen"),
    Row("GET /v1/keys/{public_id}", "/v1/keys/<key>", "manage"),
    Row("GET /v1/deliveries", "/v1/deliveries?endpoint=<endpoint>", "listen", own=True),
    Row("GET /v1/deliveries", "/v1/deliveries?endpoint=<endpoint>&after=<delivery>", "listen",
        own=True),
    Row("GET /v1/deliveries", "/v1/deliveries?stream=<stream>&sequence=1", "listen", own=True),
    Row("GET /v1/deliveries/{delivery}", "/v1/deliveries/<delivery>", "listen"),
    Row("GET /v1/deliveries", "/v1/deliveries?stream=<stream>", "listen", own=True),
    Row("GET /v1/dead-letters", "/v1/dead-letters?state=discarded", "listen", own=True),
    Row("GET /v1/dead-letters", "/v1/dead-letters?stream=<stream>", "listen", own=True),
    Row("GET /v1/replays", "/v1/replays", "listen", own=True),
    Row("GET /v1/replays/{replay}", "/v1/replays/<replay>", "listen"),
    Row("POST /v1/replays/preview", "/v1/replays/preview", "listen",
        body={"endpoint": "<endpoint>", "streams": ["<stream>"]}),
    Row("POST /v1/endpoints/{endpoint}/recover/preview",
        "/v1/endpoints/<endpoint>/recover/preview", "listen", body={}),
    Row("GET /v1/endpoints", "/v1/endpoints", "listen", own=True),
    Row("GET /v1/endpoints", "/v1/endpoints?client=<client>", "listen", own=True),
    Row("GET /v1/endpoints/{endpoint}", "/v1/endpoints/<endpoint>", "listen"),
    Row("GET /v1/endpoints/{endpoint}/statistics", "/v1/endpoints/<endpoint>/statistics",
        "listen"),
    Row("GET /v1/endpoints/{endpoint}/secrets", "/v1/endpoints/<endpoint>/secrets", "listen"),
    Row("GET /v1/registrations", "/v1/registrations", "listen", own=True),
    Row("GET /v1/registrations", "/v1/registrations?client=<client>", "listen", own=True),
    Row("GET /v1/registrations", "/v1/registrations?endpoint=<endpoint>", "listen", own=True),
    Row("GET /v1/registrations", "/v1/registrations?stream=<stream>", "listen", own=True),
    Row("GET /v1/registrations", "/v1/registrations?group=<groupname>", "listen", own=True),
    Row("GET /v1/registrations/{registration}", "/v1/registrations/<registration>", "listen"),
    Row("GET /v1/registrations/{registration}/explain",
        "/v1/registrations/<registration>/explain?stream=<stream>&sequence=1", "listen"),
    Row("GET /v1/registration-groups", "/v1/registration-groups", "listen", own=True),
    Row("GET /v1/registration-groups", "/v1/registration-groups?client=<client>", "listen",
        own=True),
    Row("GET /v1/registration-groups/{group}", "/v1/registration-groups/<group>", "listen"),
    Row("GET /v1/sessions", "/v1/sessions", "emit listen manage", own=True),
    Row("GET /v1/sessions", "/v1/sessions?group=<sessiongroupname>", "emit listen manage",
        own=True),
    Row("GET /v1/sessions/{session}", "/v1/sessions/<session>", "emit listen manage"),
    Row("GET /v1/sessions/{session}/positions", "/v1/sessions/<session>/positions",
        "emit listen manage", own=True),
    Row("GET /v1/sessions/{session}/claims", "/v1/sessions/<session>/claims",
        "emit listen manage", own=True),
    Row("GET /v1/session-groups", "/v1/session-groups", "emit listen manage", own=True),
    Row("GET /v1/session-groups/{session_group}", "/v1/session-groups/<sessiongroup>",
        "emit listen manage"),
    Row("GET /v1/session-groups/{session_group}/positions",
        "/v1/session-groups/<sessiongroup>/positions", "emit listen manage", own=True),
    Row("GET /v1/session-groups/{session_group}/claims", "/v1/session-groups/<sessiongroup>/claims",
        "emit listen manage", own=True),
    Row("GET /v1/registrations", "/v1/registrations?session=<sessionname>", "listen", own=True),
    Row("GET /v1/streams", "/v1/streams", "emit listen manage peer", own=True),
    Row("GET /v1/streams/{stream}", STREAM, "emit listen manage peer"),
    Row("GET /v1/streams/{stream}/closure", f"{STREAM}/closure", "emit manage"),
    Row("POST /v1/streams/{stream}/interest", f"{STREAM}/interest", "emit manage",
        body={"shape": {}}),
    Row("GET /v1/streams/{stream}/events", f"{STREAM}/events?from=oldest", "listen peer"),
    Row("GET /v1/streams/{stream}/events", f"{STREAM}/events?from=<segment>:1", "listen peer"),
    Row("GET /v1/streams/{stream}/events", "/v1/streams/plain/events?from=<segment>:1"),
    Row("GET /v1/streams/{stream}/events",
        f"{STREAM}/events?from=oldest&registrations=<registration>", "listen"),
    Row("GET /v1/streams/{stream}/events/{sequence}", f"{STREAM}/events/1", "listen peer"),
    Row("GET /v1/streams/{stream}/events/{sequence}/matches", f"{STREAM}/events/1/matches",
        "listen", own=True),
    Row("GET /v1/streams/{stream}/match-index", f"{STREAM}/match-index", "manage"),
    Row("GET /v1/streams/{stream}/segments", f"{STREAM}/segments", "emit listen manage peer"),
    Row("GET /v1/streams/{stream}/segments/current", f"{STREAM}/segments/current",
        "emit listen manage peer"),
    Row("GET /v1/streams/{stream}/segments/{segment}/raw", f"{STREAM}/segments/<segment>/raw",
        "listen peer"),
    Row("GET /v1/streams/{stream}/segments/{segment}/raw",
        "/v1/streams/plain/segments/<segment>/raw"),
    Row("GET /v1/streams/{stream}/state", f"{STREAM}/state", "listen peer"),
    Row("GET /v1/streams/{stream}/state/{key}", f"{STREAM}/state/<statekey>", "listen peer"),
    Row("GET /v1/applications", "/v1/applications", "listen peer", own=True),
    Row("GET /v1/applications", "/v1/applications?state=faulted", "listen peer", own=True),
    Row("GET /v1/applications/{application}", "/v1/applications/<application>", "listen peer"),
    Row("GET /v1/application-groups", "/v1/application-groups", "listen peer", own=True),
    Row("GET /v1/application-groups/{application_group}",
        "/v1/application-groups/<applicationgroup>", "listen peer"),
    Row("GET /v1/pattern-groups", "/v1/pattern-groups", "listen", own=True),
    Row("GET /v1/pattern-groups", "/v1/pattern-groups?client=<client>", "listen", own=True),
    Row("GET /v1/pattern-groups/{pattern_group}", "/v1/pattern-groups/<patterngroup>", "listen"),
    Row("GET /v1/patterns", "/v1/patterns", "listen", own=True),
    Row("GET /v1/patterns", "/v1/patterns?group=<patterngroupname>", "listen", own=True),
    Row("GET /v1/patterns/{pattern}", "/v1/patterns/<pattern>", "listen"),
    Row("GET /v1/patterns/{pattern}/waiting", "/v1/patterns/<pattern>/waiting", "listen"),
    Row("POST /v1/patterns/check", "/v1/patterns/check", "emit listen manage peer", own=True,
        body={"language": "ready", "text": "{A}"}),
    Row("POST /v1/patterns/dry-run", "/v1/patterns/dry-run", "listen peer",
        body={"language": "ready", "text": "{A}", "stream": "<stream>"}),
    Row("GET /v1/timers", "/v1/timers", "emit manage", own=True),
    Row("GET /v1/timers", "/v1/timers?client=<client>", "emit manage", own=True),
    Row("GET /v1/timers/{timer}", "/v1/timers/<timer>", "emit manage"),
    Row("GET /v1/registrations/{registration}/timers/{handle}",
        "/v1/registrations/<registration>/timers/<handle>", "emit manage"),
    Row("GET /v1/sources", "/v1/sources", "emit manage", own=True),
    Row("GET /v1/sources", "/v1/sources?client=<client>", "emit manage", own=True),
    Row("GET /v1/sources/{source}", "/v1/sources/<source>", "emit manage"),
    Row("GET /v1/sources/{source}/samples", "/v1/sources/<source>/samples", "emit manage"),
    Row("GET /v1/sources/{source}/samples/{sample}", "/v1/sources/<source>/samples/<sample>",
        "emit manage"),
    Row("POST /v1/sources/{source}/test", "/v1/sources/<source>/test", "emit manage",
        body={"body": "{}"}),
    Row("GET /v1/connectors", "/v1/connectors", "emit manage", own=True),
    Row("GET /v1/connectors/{connector}", "/v1/connectors/<connector>", "emit manage"),
    Row("POST /v1/connectors/{connector}/test", "/v1/connectors/<connector>/test", "emit manage",
        body={"row": {"id": 1}}),
    Row("GET /v1/types", "/v1/types", "emit listen manage peer", own=True),
    Row("GET /v1/types/{domain}/{type}", "/v1/types/<type>", "emit listen manage peer"),
    Row("GET /v1/types/{domain}/{type}/{version}", "/v1/types/<type>/1",
        "emit listen manage peer"),
    Row("POST /v1/filters/check", "/v1/filters/check", "listen peer",
        own=True, body={"streams": ["<stream>"], "attributes": {}}),
    Row("POST /v1/filters/dry-run", "/v1/filters/dry-run", "listen peer",
        body={"stream": "<stream>", "from": "oldest"}),
    Row("POST /v1/filters/explain", "/v1/filters/explain", "listen peer",
        body={"stream": "<stream>", "sequence": 1}),
    Row("GET /v1/limits", "/v1/limits", "emit listen manage peer", own=True),
    Row("GET /v1/limits", "/v1/limits?client=<client>", "emit listen manage"),
    Row("GET /v1/jobs", "/v1/jobs", operator=True),
    Row("GET /v1/jobs/{job}/runs", "/v1/jobs/backtest/runs", operator=True),
    Row("GET /v1/jobs/{job}/runs/{run}", "/v1/jobs/backtest/runs/<run>", operator=True),
    Row("GET /v1/jobs/{job}/runs/{run}/log", "/v1/jobs/backtest/runs/<run>/log", operator=True),
    Row("GET /v1/jobs/{job}/runs/{run}/files/{path}",
        "/v1/jobs/backtest/runs/<run>/files/x.csv", operator=True),
)  # fmt: skip
WRITES = (
    Row("POST /v1/streams/{stream}/events", f"{STREAM}/events", "emit",
        body={"domain": "shop", "type": "order.placed"}),
    Row("POST /v1/streams/{stream}/match-index", f"{STREAM}/match-index", "manage", body={}),
    Row("PUT /v1/streams/{stream}/state/{key}", f"{STREAM}/state/<statekey>", "emit",
        body={"domain": "shop", "type": "order.placed"}),
    Row("DELETE /v1/streams/{stream}/state/{key}", f"{STREAM}/state/<statekey>", "emit"),
    Row("PUT /v1/applications/{application}", "/v1/applications/more", "emit", own=True,
        body={"state": "online"}),
    Row("PATCH /v1/monitoring", "/v1/monitoring", "manage", own=True, body={"presence": True}),
    Row("POST /v1/applications/{application}/heartbeat",
        "/v1/applications/<application>/heartbeat", "emit", body={}),
    Row("PUT /v1/applications/{application}/monitor",
        "/v1/applications/<application>/monitor", "manage", body={"timeout_s": 3600}),
    Row("DELETE /v1/applications/{application}/monitor",
        "/v1/applications/<application>/monitor", "manage"),
    Row("PUT /v1/application-groups/{application_group}", "/v1/application-groups/more",
        "manage", body={"applications": ["<application>"]}),
    Row("POST /v1/pattern-groups", "/v1/pattern-groups",
        body={"streams": ["<stream>"], "client": "<client>", "name": "mine"}),
    Row("PATCH /v1/pattern-groups/{pattern_group}", "/v1/pattern-groups/<patterngroup>",
        body={"suspended": True}),
    Row("POST /v1/patterns", "/v1/patterns",
        body={"group": "<patterngroupname>", "name": "mine", "language": "ready", "text": "{A}"}),
    Row("PATCH /v1/patterns/{pattern}", "/v1/patterns/<pattern>", body={"text": "{B}"}),
    Row("POST /v1/sources", "/v1/sources", "emit",
        body={"stream": "<stream>", "client": "<client>", "name": "more", "provider": "github"}),
    Row("PATCH /v1/sources/{source}", "/v1/sources/<source>", "emit manage",
        body={"enabled": False}),
    Row("POST /v1/sources/{source}/url", "/v1/sources/<source>/url", "emit manage", body={}),
    Row("POST /v1/sources/{source}/secrets", "/v1/sources/<source>/secrets", "emit manage",
        body={}),
    Row("POST /v1/connectors", "/v1/connectors", "emit",
        body={"stream": "<stream>", "client": "<client>", "name": "more", "kind": "outbox-polling",
              "url": "postgresql://u@h/d", "settings": {"table": "t"}}),
    Row("PATCH /v1/connectors/{connector}", "/v1/connectors/<connector>", "emit manage",
        body={"on_refusal": "set_aside"}),
    Row("POST /v1/timers", "/v1/timers", "emit",
        body={"stream": "<stream>", "client": "<client>", "handle": "more", "after_s": 36_000}),
    Row("PATCH /v1/timers/{timer}", "/v1/timers/<timer>", "emit manage", body={"suspended": False}),
    Row("PATCH /v1/registrations/{registration}/timers/{handle}",
        "/v1/registrations/<registration>/timers/<handle>", "emit manage",
        body={"suspended": False}),
    Row("PUT /v1/channels/{channel}", "/v1/channels/more", "manage", own=True, body={"mask": "4"}),
    Row("PUT /v1/types/{domain}/{type}", "/v1/types/more/one", "manage", own=True,
        body={"schema": {}}),
    Row("POST /v1/clients", "/v1/clients", "manage", own=True, body={"name": "newcomer"}),
    Row("PATCH /v1/clients/{client}", "/v1/clients/<client>", "manage", body={"groups": ["ops"]}),
    Row("POST /v1/clients/{client}/keys", "/v1/clients/<client>/keys", "manage",
        body={"grants": []}),
    Row("PATCH /v1/keys/{public_id}", "/v1/keys/<key>", "manage", body={"label": "mine"}),
    Row("POST /v1/connection-tokens", "/v1/connection-tokens", "emit listen manage peer", own=True,
        body={}),
    Row("POST /v1/deliveries/{delivery}/skip", "/v1/deliveries/<delivery>/skip", "listen",
        body={}),
    Row("POST /v1/deliveries/{delivery}/discard", "/v1/deliveries/<delivery>/discard", "listen",
        body={}),
    Row("POST /v1/deliveries/{delivery}/resend", "/v1/deliveries/<delivery>/resend", "listen",
        body={"force": True}),
    Row("POST /v1/replays", "/v1/replays", "listen",
        body={"endpoint": "<endpoint>", "streams": ["<stream>"]}),
    *(Row(f"POST /v1/replays/{{replay}}/{act}", f"/v1/replays/<replay>/{act}", "listen", body={})
      for act in ("pause", "resume", "cancel")),
    Row("POST /v1/endpoints/{endpoint}/examples", "/v1/endpoints/<endpoint>/examples", "listen",
        body={"domain": "shop", "type": "order.placed"}),
    Row("POST /v1/endpoints/{endpoint}/recover", "/v1/endpoints/<endpoint>/recover", "listen",
        body={}),
    Row("POST /v1/endpoints", "/v1/endpoints", "listen",
        body={"url": "https://thief.example/", "client": "<client>"}),
    Row("PATCH /v1/endpoints/{endpoint}", "/v1/endpoints/<endpoint>", "listen",
        body={"url": "https://thief.example/"}),
    Row("POST /v1/endpoints/{endpoint}/secrets", "/v1/endpoints/<endpoint>/secrets", "listen",
        body={}),
    Row("POST /v1/registrations", "/v1/registrations", "listen",
        body={"streams": ["<stream>"], "client": "<client>"}),
    Row("POST /v1/registrations", "/v1/registrations", "listen",
        body={"streams": ["<stream>"], "endpoint": "<endpoint>"}),
    Row("POST /v1/registrations", "/v1/registrations", "listen",
        body={"streams": ["<stream>"], "group": "<groupname>"}),
    Row("POST /v1/registrations/bulk", "/v1/registrations/bulk?client=<client>", "listen",
        own=True, body=b'{"streams": ["vault"]}\n'),
    Row("PATCH /v1/registrations/{registration}", "/v1/registrations/<registration>", "listen",
        body={"type": "other"}),
    Row("POST /v1/registration-groups", "/v1/registration-groups", "listen",
        body={"name": "mine", "client": "<client>"}),
    Row("PATCH /v1/registration-groups/{group}", "/v1/registration-groups/<group>", "listen",
        body={"suspended": True}),
    Row("POST /v1/sessions", "/v1/sessions", "emit listen manage",
        body={"name": "mine", "kind": "consumer", "client": "<client>"}),
    Row("PATCH /v1/sessions/{session}", "/v1/sessions/<session>", "emit listen manage",
        body={"window": 5}),
    Row("PATCH /v1/sessions/{session}", "/v1/sessions/<session>", "listen",
        body={"suspended": True}),
    Row("POST /v1/sessions/{session}/pull", "/v1/sessions/<sessionname>/pull",
        "emit listen manage", body={}),
    Row("POST /v1/sessions/{session}/acknowledgements",
        "/v1/sessions/<sessionname>/acknowledgements", "listen",
        body={"streams": [{"stream": "<stream>", "sequence": 0}]}),
    Row("POST /v1/session-groups", "/v1/session-groups", "emit listen manage",
        body={"name": "mine", "client": "<client>"}),
    Row("PATCH /v1/session-groups/{session_group}", "/v1/session-groups/<sessiongroup>",
        "emit listen manage", body={"window": 5}),
    Row("POST /v1/registrations", "/v1/registrations", "listen",
        body={"streams": ["<stream>"], "session": "<sessionname>"}),
    Row("POST /v1/zones", "/v1/zones", operator=True, body={"name": "<zone>"}),
    Row("PUT /v1/limits", "/v1/limits", operator=True, body={}),
    Row("PUT /v1/storage", "/v1/storage", operator=True, body={"quota_bytes": None}),
    Row("POST /v1/jobs/{job}/runs", "/v1/jobs/backtest/runs", operator=True,
        body={"params": {"zone": "<zone>", "stream": "<stream>", "filter": "(> a 1)"}}),
    Row("POST /v1/jobs/{job}/runs/{run}/cancel", "/v1/jobs/backtest/runs/<run>/cancel",
        operator=True, body={}),
    Row("POST /v1/jobs/retention/runs/{run}/apply", "/v1/jobs/retention/runs/<run>/apply",
        operator=True, body={}),
    Row("PUT /v1/streams/{stream}", STREAM, "manage", own=True, body={"segment_events_max": 7}),
    Row("POST /v1/operators", "/v1/operators", operator=True,
        body={"name": "<operator>", "role": "viewer"}),
    Row("PATCH /v1/operators/{operator}", "/v1/operators/<operator>", operator=True,
        body={"role": "operator"}),
    Row("POST /v1/operators/{operator}/setup-token", "/v1/operators/<operator>/setup-token",
        operator=True, body={}),
    Row("DELETE /v1/operators/{operator}", "/v1/operators/<operator>", operator=True),
    Row("DELETE /v1/zones/{name}", "/v1/zones/<zone>", operator=True),
    Row("POST /v1/zones/{name}/restore", "/v1/zones/<zone>/restore", operator=True, body={}),
    *(Row(f"{method} {route}{after}", f"{path}{after}", "manage", own=True, body=body)
      for route, path in (("/v1/channels/{channel}", "/v1/channels/more"),
                          ("/v1/types/{domain}/{type}", "/v1/types/more/one"),
                          ("/v1/streams/{stream}", STREAM))
      for method, after, body in (("DELETE", "", None), ("POST", "/restore", {}))),
    Row("DELETE /v1/patterns/{pattern}", "/v1/patterns/<pattern>"),
    Row("DELETE /v1/pattern-groups/{pattern_group}", "/v1/pattern-groups/<patterngroup>"),
    Row("DELETE /v1/sources/{source}", "/v1/sources/<source>", "emit manage"),
    Row("DELETE /v1/connectors/{connector}", "/v1/connectors/<connector>", "emit manage"),
    Row("DELETE /v1/timers/{timer}", "/v1/timers/<timer>", "emit manage"),
    Row("DELETE /v1/registrations/{registration}/timers/{handle}",
        "/v1/registrations/<registration>/timers/<handle>", "emit manage"),
    Row("DELETE /v1/registrations/{registration}", "/v1/registrations/<registration>", "listen"),
    Row("DELETE /v1/registration-groups/{group}", "/v1/registration-groups/<group>", "listen"),
    Row("DELETE /v1/sessions/{session}", "/v1/sessions/<session>", "listen"),
    Row("DELETE /v1/session-groups/{session_group}", "/v1/session-groups/<sessiongroup>",
        "listen"),
    Row("POST /v1/endpoints/{endpoint}/verify", "/v1/endpoints/<endpoint>/verify", "listen"),
    Row("DELETE /v1/endpoints/{endpoint}/secrets/{secret}",
        "/v1/endpoints/<endpoint>/secrets/<secret>", "listen"),
    Row("DELETE /v1/endpoints/{endpoint}", "/v1/endpoints/<endpoint>", "listen"),
    Row("DELETE /v1/application-groups/{application_group}",
        "/v1/application-groups/<applicationgroup>", "manage"),
    Row("DELETE /v1/applications/{application}", "/v1/applications/<application>", "manage"),
    Row("DELETE /v1/keys/{public_id}", "/v1/keys/<key>", "manage"),
    Row("DELETE /v1/clients/{client}", "/v1/clients/<client>", "manage"),
)  # fmt: skip


class Tenants:
    """The owner's zone with something of everything, and keys of all who are not the owner."""

    def __init__(self, hub: LiveHub, sink: Sink) -> None:
        self.hub = hub
        self.zone, self.other = hub.new_zone(), hub.new_zone()
        zone = self.zone
        self.client = f"{NAME}-owner"
        everything = [f"{action}:*" for action in ACTIONS]
        self.owner = zone.key(*everything, client=self.client)
        self.keys = {action: zone.key(f"{action}:*", client=self.client) for action in ACTIONS}
        self.keys["peer"] = zone.key("listen:*", client=f"{NAME}-peer")
        self.keys["stranger"] = self.other.key(*everything, client="stranger")
        zone.create_stream(NAME, keyed=True, segment_events_max=2)
        for each in (zone, self.other):
            each.create_stream("plain")
        zone.define_channel(f"{NAME}-channel", 0)
        self._interest(sink)
        self._sessions()
        self._source()
        self._patterns()

    def _interest(self, sink: Sink) -> None:
        zone, key = self.zone, self.owner

        def ask(method: str, path: str, body: Any) -> Any:
            return _made(zone.hub.call(method, path, body, key=key))

        schema = {"properties": {"code": {"const": SECRET}}}
        ask("PUT", f"/v1/types/{NAME}/order.placed", {"schema": schema})
        state = {"state": "faulted", "reason": SECRET}
        ask("PUT", f"/v1/applications/{NAME}-till", state)
        group = {"applications": [f"{NAME}-till"]}
        ask("PUT", f"/v1/application-groups/{NAME}-tills", group)
        endpoint = zone.endpoint(sink.url(f"/{SECRET}/{zone.name}"), key=key)["id"]
        group = ask("POST", "/v1/registration-groups", {"name": f"{NAME}-group"})
        body = {"streams": [NAME], "endpoint": endpoint, "attributes": {"code": SECRET}}
        [made] = zone.register({**body, "group": f"{NAME}-group"}, key=key)
        event = {"domain": NAME, "type": "order.placed", "attributes": {"code": SECRET}}
        later = {"stream": NAME, "handle": f"{NAME}-tick", "after_s": 36_000, "event": event}
        timer = ask("POST", "/v1/timers", later)
        ask("POST", "/v1/timers", {**later, "registration": made["id"]})
        for state_key in ("sku-7", "sku-7", f"{SECRET}-key"):
            assert zone.emit(NAME, {**event, "key": state_key}, key=key).status == 200
        page = zone.hub.call("GET", f"/v1/streams/{NAME}/segments", key=key).json
        label = {"grants": [], "label": SECRET}
        labelled = ask("POST", f"/v1/clients/{self.client}/keys", label)
        delivered = finished(zone.hub, key, endpoint, 3)
        for process in zone.hub.workers:  # runs of jobs stay requested: each would take Spark
            process.stop()
        params = {"zone": zone.name, "stream": NAME, "filter": "(> code 1)"}
        run = _made(zone.hub.operate("POST", "/v1/jobs/backtest/runs", {"params": params}))
        replay = ask("POST", "/v1/replays", {"endpoint": endpoint, "streams": [NAME]})
        zone.hub.call("POST", f"/v1/replays/{replay['id']}/cancel", {}, key=key)
        operator = f"{SECRET}-operator"
        _made(zone.hub.operate("POST", "/v1/operators", {"name": operator, "role": "viewer"}))
        secrets = f"/v1/endpoints/{endpoint}/secrets"
        ask("POST", secrets, {})
        previous = zone.hub.call("GET", secrets, key=key).json["items"][0]
        self.marks = {
            "<stream>": NAME,
            "<client>": self.client,
            "<key>": labelled["public_id"],
            "<system>": labelled["changed"],
            "<endpoint>": endpoint,
            "<secret>": previous["id"],
            "<registration>": made["id"],
            "<timer>": timer["id"],
            "<handle>": f"{NAME}-tick",
            "<group>": group["id"],
            "<groupname>": f"{NAME}-group",
            "<delivery>": delivered[0]["id"],
            "<replay>": replay["id"],
            "<segment>": page["items"][0]["uuid"],
            "<statekey>": "sku-7",
            "<type>": f"{NAME}/order.placed",
            "<application>": f"{NAME}-till",
            "<applicationgroup>": f"{NAME}-tills",
            "<run>": run["id"],
            "<zone>": zone.name,
            "<operator>": operator,
        }

    def _sessions(self) -> None:
        """Create a session and a session group, each with a registration."""
        self.marks |= {"<sessionname>": f"{NAME}-session", "<sessiongroupname>": f"{NAME}-team"}
        for mark, path, body in (
            ("session", "/v1/sessions", {"name": f"{NAME}-session", "kind": "consumer"}),
            ("sessiongroup", "/v1/session-groups", {"name": f"{NAME}-team", "sharing": "one"}),
        ):
            made = _made(self.hub.call("POST", path, body, key=self.owner))
            self.marks[f"<{mark}>"] = made["id"]
        self.zone.register(
            {"streams": [NAME], "session": f"{NAME}-session"},
            {"streams": [NAME], "session_group": f"{NAME}-team"},
            key=self.owner,
        )

    def _patterns(self) -> None:
        """Create a pattern group with a pattern, after all events: it consumes none."""
        name = f"{NAME}-patterns"
        body = {"group": name, "name": "one", "language": "ready"}
        body["text"] = f"{{a: A | $code == '{SECRET}'}}"
        for mark, path, made in (
            ("patterngroup", "/v1/pattern-groups", {"name": name, "streams": [NAME]}),
            ("pattern", "/v1/patterns", body),
        ):
            self.marks[f"<{mark}>"] = _made(self.hub.call("POST", path, made, key=self.owner))["id"]
        self.marks["<patterngroupname>"] = name

    def _source(self) -> None:
        """Create a source and let its provider send a request; create a connector."""
        made = _made(self.hub.call("POST", "/v1/sources", {
            "name": f"{NAME}-source", "stream": NAME, "provider": "api-key", "secret": SECRET,
            "options": {"name": "X-Key"}, "mapping": {"attributes": {"code": {"value": SECRET}}},
        }, key=self.owner))  # fmt: skip
        sent = self.hub.call("POST", made["path"], {"a": SECRET}, headers={"X-Key": SECRET})
        assert sent.status == 200, sent
        path = f"/v1/sources/{made['id']}/samples"
        sample = self.hub.call("GET", path, key=self.owner).json["items"][0]
        self.marks |= {"<source>": made["id"], "<sample>": sample["id"]}
        made = _made(self.hub.call("POST", "/v1/connectors", {
            "name": f"{NAME}-connector", "stream": NAME, "kind": "outbox-polling",
            "url": f"postgresql://reader:{SECRET}@db.example/shop", "settings": {"table": SECRET},
            "mapping": {"attributes": {"code": {"value": SECRET}}}, "enabled": False,
        }, key=self.owner))  # fmt: skip
        self.marks["<connector>"] = made["id"]

    def send(self, row: Row, who: str, *, zone: str = "") -> Answer:
        """Return the row's request by one of `keys`, by the `owner`, or by the `operator`."""
        method, path, body = row.route.split()[0], self.fill(row.path), self.fill(row.body)
        if zone:
            path += ("&" if "?" in path else "?") + f"zone={zone}"
        if who == "operator":
            return self.hub.operate(method, path, body)
        key = self.owner if who == "owner" else self.keys[who]
        headers = {"Content-Type": "application/x-ndjson"} if isinstance(body, bytes) else {}
        return self.hub.call(method, path, body, key=key, headers=headers)

    def fill(self, value: Any) -> Any:
        """Return a path or a body with the owner's ids in the places of marks."""
        if isinstance(value, dict):
            return {name: self.fill(one) for name, one in value.items()}
        if isinstance(value, list):
            return [self.fill(one) for one in value]
        if not isinstance(value, str):
            return value
        if value in self.marks:
            return self.marks[value]
        for mark, text in self.marks.items():
            value = value.replace(mark, str(text))
        return value

    def leaked(self, row: Row, who: str, answer: Answer) -> set[str]:
        """Return the owner's markers that an answer holds, and that were not in the request. To the
        owner's client it may say which stream's grant is missing.
        """
        sent = f"{self.fill(row.path)} {self.fill(row.body)}"
        text = answer.body.decode("utf-8", "replace")
        markers = (SECRET,) if who in ACTIONS else (SECRET, NAME)
        return {marker for marker in markers if marker in text and marker not in sent}


def _made(answer: Answer) -> Any:
    assert answer.status in (200, 201, 202), answer
    return answer.json
