"""The file with the demo's credentials, readable by its owner only. Plain module."""

import os
import secrets
from pathlib import Path
from typing import NamedTuple

import orjson

OPERATOR = "operator"
CLIENT = "demo"
ZONE = "default"


class DemoAccess(NamedTuple):
    """The demo's credentials: an operator's password, and the key of the client `demo`, or ""."""

    username: str
    password: str
    key: str
    secret: str = ""  # of the demo's endpoint ("": none yet)


def new_access() -> DemoAccess:
    return DemoAccess(OPERATOR, secrets.token_urlsafe(18), "")


def read_access(file: Path) -> DemoAccess | None:
    """Return the credentials in the file, or None if it is missing or not in this format."""
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
    """Write the file atomically, readable by its owner only."""
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
