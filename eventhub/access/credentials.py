"""The file with the demo's credentials: written for its owner alone, and kept. Plain module."""

import os
import secrets
from pathlib import Path
from typing import NamedTuple

import orjson

OPERATOR = "operator"
CLIENT = "demo"


class DemoAccess(NamedTuple):
    """Who may use the demo: an operator by password, the client `demo` by key (empty: none yet)."""

    username: str
    password: str
    key: str
    secret: str = ""  # of the demo's endpoint; empty: none yet


def new_access() -> DemoAccess:
    return DemoAccess(OPERATOR, secrets.token_urlsafe(18), "")


def read_access(file: Path) -> DemoAccess | None:
    """What the file says, or None if there is none or it is not ours to understand."""
    try:
        found = orjson.loads(file.read_bytes())
        operator, client = found["operator"], found["client"]
        who = operator["username"], operator["password"], client["key"]
        access = DemoAccess(*who, client.get("endpoint_secret", ""))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    known = all(who) and all(isinstance(text, str) for text in access)
    return access if known else None


def write_access(file: Path, access: DemoAccess) -> None:
    """Put the file in place at once, readable by its owner only."""
    content = {
        "operator": {"username": access.username, "password": access.password},
        "client": {"name": CLIENT, "key": access.key, "endpoint_secret": access.secret},
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        out.write(orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n")
        out.flush()
        os.fsync(out.fileno())
    new.replace(file)
