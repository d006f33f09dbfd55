"""The scripts of transient streams: their texts, the keys of a stream, and what refusals mean. SQL
module.
"""

import re
from pathlib import Path
from typing import Any

import redis

from eventhub.base import limits
from eventhub.eventlog.drafts import Draft

_LUA = Path(__file__).parent / "lua"
_BEGIN = (_LUA / "begin.lua").read_text()
APPEND = _BEGIN + (_LUA / "append.lua").read_text()
READ = _BEGIN + (_LUA / "read.lua").read_text()
CHANNEL = "eventhub:transient:"
NO_REDIS = "This hub runs without Redis; set REDIS_URL to use transient streams."
AWAY = (redis.RedisError, OSError, TimeoutError)
OTHER_HISTORY = [b"history"]  # the answer of a script for a ring of another history
# The codes with which Redis refuses to write; for a script, they are within the error's text.
_REFUSED = re.compile(
    r"\b(OOM|LOADING|MISCONF|READONLY|NOREPLICAS|MASTERDOWN|BUSY|NOPERM|NOAUTH|CLUSTERDOWN|MOVED"
    r"|ASK|TRYAGAIN)\b"
)


class NotSent(Exception):
    """There was no connection, so nothing was sent."""


def keys(stream_id: int) -> list[str]:
    """Return the keys of a stream, all in one slot of a cluster."""
    name = f"eventhub:{{t{stream_id}}}"
    return [f"{name}:meta", f"{name}:events", f"{name}:numbers", f"{name}:tokens"]


def stored_nothing(error: BaseException) -> bool:
    """Return whether certainly nothing was stored: there was no connection, or Redis refused the
    script or its first write. Redis never interrupts a script after its first write.
    """
    if isinstance(error, redis.ResponseError | redis.exceptions.BusyLoadingError):
        code = getattr(error, "status_code", None) or ""
        return _REFUSED.search(f"{code} {error}") is not None
    return isinstance(error, NotSent) or isinstance(
        error.__cause__, ConnectionRefusedError | FileNotFoundError
    )


def draft_values(draft: Draft) -> list[Any]:
    """Return the values of a draft for the script that appends."""
    own = draft.producer
    if own is None:
        return [draft.mask, draft.payload, "", "", "", draft.token]
    producer = f"{own.client_id}:{own.incarnation}"
    slot = own.number % limits.PRODUCER_WINDOW
    return [draft.mask, draft.payload, producer, own.number, slot, draft.token]
