"""The demo's registrations and its endpoint, created through the public API as by any client.
Plain module.

An existing endpoint, found by its description, is reused; only its URL follows the receiver.
"""

from pathlib import Path
from typing import Any

from eventhub_client.remote import HubClient

from eventhub.access import credentials

DESCRIPTION = "the demo's own receiver"
REGISTRATIONS: tuple[dict[str, Any], ...] = (
    {"streams": ["github"], "domain": "github", "attributes": {"event": "issues"}},
    {"streams": ["github"], "domain": "github", "attributes": {"event": "pull_request"}},
    {"streams": ["host"], "domain": "host", "type": "counters", "attributes": {"counter": "disk"}},
)


async def ensure_interest(hub: HubClient, url: str, file: Path) -> str:
    """Create the endpoint and its registrations if they are missing; return the endpoint's signing
    secret, which is stored in the credentials file.

    An endpoint whose secret is lost is replaced, with its registrations.
    """
    access = credentials.read_access(file)
    secret = access.secret if access else ""
    endpoint = await _find_endpoint(hub)
    if endpoint is not None and not secret:
        await _remove(hub, endpoint["id"])
        endpoint = None
    if endpoint is None:
        body = {"url": url, "description": DESCRIPTION}
        endpoint = await hub.call("POST", "/v1/endpoints", body)
        secret = endpoint["secret"]
        if access is not None:
            credentials.write_access(file, access._replace(secret=secret))
    elif endpoint["url"] != url:
        await hub.call("PATCH", f"/v1/endpoints/{endpoint['id']}", {"url": url})
    page = await hub.call("GET", f"/v1/registrations?endpoint={endpoint['id']}&limit=1")
    if not page["items"]:
        registrations = [{**one, "endpoint": endpoint["id"]} for one in REGISTRATIONS]
        await hub.call("POST", "/v1/registrations", registrations)
    return secret


async def _find_endpoint(hub: HubClient) -> dict[str, Any] | None:
    page = await hub.call("GET", "/v1/endpoints?limit=1000")
    mine = [item for item in page["items"] if item["description"] == DESCRIPTION]
    return mine[0] if mine else None


async def _remove(hub: HubClient, endpoint_id: int) -> None:
    page = await hub.call("GET", f"/v1/registrations?endpoint={endpoint_id}&limit=1000")
    for item in page["items"]:
        await hub.call("DELETE", f"/v1/registrations/{item['id']}")
    await hub.call("DELETE", f"/v1/endpoints/{endpoint_id}")
