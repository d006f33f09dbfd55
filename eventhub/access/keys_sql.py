"""The queries that find a live key with its client and zone, for Django's connection and for those
of the hot routes. Plain module.
"""

from typing import Any, LiteralString

import orjson

from eventhub.access.grants import Grant
from eventhub.access.principal import Principal

# The columns in the order of `principal_of`. Grants and groups are selected as text and times as
# microseconds, because the two connections load jsonb and timestamptz differently. A live key is
# neither revoked nor expired.
_LIVE_KEY: LiteralString = """
    SELECT k.id, k.public_id, c.id, c.name, z.id, z.name, k.grants::text,
           (extract(epoch FROM k.expires_at) * 1000000)::bigint, c.groups::text
    FROM api_keys k
    JOIN clients c ON c.id = k.client_id
    JOIN zones z ON z.id = c.zone_id
    WHERE k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())
"""
# by API key; parameter: sha256 of the key's text
FIND_BY_DIGEST: LiteralString = _LIVE_KEY + " AND k.digest = %s"
# by connection token; parameter: the token's `public_id`
FIND_BY_PUBLIC_ID: LiteralString = _LIVE_KEY + " AND k.public_id = %s"


def principal_of(row: tuple[Any, ...]) -> Principal:
    """Return the principal of a row of either query."""
    key_id, public_id, client_id, client, zone_id, zone, grants, expires_at_us, groups = row
    # grants were validated when written; validating them again would cost more than the tuple
    found = tuple(Grant(item["action"], item["streams"]) for item in orjson.loads(grants))
    owner = (key_id, public_id, client_id, client, zone_id, zone)
    return Principal(*owner, found, expires_at_us, groups=frozenset(orjson.loads(groups)))
