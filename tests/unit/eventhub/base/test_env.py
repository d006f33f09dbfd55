"""Reading settings from the environment and from a file; invalid ones are refused with what to
write."""

import os
from pathlib import Path
from typing import Any

import pytest

from eventhub.base.env import BadSettings, load, move_file_into_environment, read_env, unknown_names
from eventhub.base.setting import HIDDEN, without_login


@pytest.fixture(autouse=True)
def none_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith(("DATABASE_", "EVENTHUB_", "JAVA_HOME", "REDIS_", "SPARK_")):
            monkeypatch.delenv(name)


def from_file(monkeypatch: pytest.MonkeyPatch, folder: Path, text: str) -> Path:
    """Write a settings file with this text, and use it."""
    file = folder / "eventhub.toml"
    file.write_text(text)
    monkeypatch.setenv("EVENTHUB_SETTINGS_FILE", str(file))
    return file


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("EVENTHUB_QUOTA_BYTES", "", "quota_bytes", None),
        ("EVENTHUB_QUOTA_BYTES", "1073741824", "quota_bytes", 1 << 30),
        ("EVENTHUB_QUOTA_BYTES", "10GB", "quota_bytes", 10 * 10**9),
        ("EVENTHUB_QUOTA_BYTES", "10GiB", "quota_bytes", 10 << 30),
        ("EVENTHUB_QUOTA_BYTES", " 10 gib ", "quota_bytes", 10 << 30),
        ("EVENTHUB_QUOTA_BYTES", "10Gi", "quota_bytes", 10 << 30),
        ("EVENTHUB_QUOTA_BYTES", "1.5TB", "quota_bytes", 1_500 * 10**9),
        ("EVENTHUB_QUOTA_BYTES", "1PiB", "quota_bytes", 1 << 50),
        ("EVENTHUB_SECRET_KEY", "k" * 32, "secret_key", "k" * 32),
        ("EVENTHUB_DEBUG", "true", "debug", True),
        ("EVENTHUB_DEBUG", "YES", "debug", True),
        ("EVENTHUB_DEBUG", "on", "debug", True),
        ("EVENTHUB_DEBUG", "1", "debug", True),
        ("EVENTHUB_DEBUG", "false", "debug", False),
        ("EVENTHUB_DEBUG", "no", "debug", False),
        ("EVENTHUB_DEBUG", "off", "debug", False),
        ("EVENTHUB_DEBUG", "0", "debug", False),
        ("EVENTHUB_DEBUG", "", "debug", False),
        ("EVENTHUB_LOG_FORMAT", "JSON", "log_format", "json"),
        ("EVENTHUB_LOG_FORMAT", "", "log_format", "text"),
        ("EVENTHUB_LOG_LEVEL", "Warning", "log_level", "warning"),
        ("EVENTHUB_DATA", "", "data", "var"),
        ("EVENTHUB_SPARK_MEMORY", "", "spark_memory", "2g"),
        ("SPARK_MASTER", "local[4]", "spark_master", "local[4]"),
        (
            "SPARK_MASTER",
            "k8s://https://10.0.0.1:6443",
            "spark_master",
            "k8s://https://10.0.0.1:6443",
        ),
        ("DATABASE_URL", "host=/run user=eventhub", "database_url", "host=/run user=eventhub"),
        ("DATABASE_URL", "postgresql://a:1,b:2/e", "database_url", "postgresql://a:1,b:2/e"),
        ("DATABASE_URL", "postgresql:///e?host=@x", "database_url", "postgresql:///e?host=@x"),
        ("DATABASE_URL", "postgresql://u:%25@h/e", "database_url", "postgresql://u:%25@h/e"),
        ("REDIS_URL", "unix:///run/redis.sock", "redis_url", "unix:///run/redis.sock"),
        (
            "EVENTHUB_ALLOWED_HOSTS",
            "*, .example.org,[::1]",
            "allowed_hosts",
            ("*", ".example.org", "[::1]"),
        ),
        ("EVENTHUB_ORIGINS", "https://*.example.org", "origins", ("https://*.example.org",)),
        ("EVENTHUB_TRUSTED_PROXIES", "10.0.0.0/8,::1", "trusted_proxies", ("10.0.0.0/8", "::1")),
        ("EVENTHUB_RESTARTS_MAX", "0", "restarts_max", 0),
        ("EVENTHUB_START_TIMEOUT_S", "", "start_timeout_s", None),
    ],
)
def test_setting_is_read(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, field: str, value: Any
) -> None:
    monkeypatch.setenv(name, text)
    assert getattr(read_env(), field) == value


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("EVENTHUB_QUOTA_BYTES", "ten", "'ten' is not a size such as 10GiB"),  # was: no quota
        ("EVENTHUB_QUOTA_BYTES", "10G", "'10G' is not a size such as 10GiB"),  # 10**9, or 1 << 30?
        ("EVENTHUB_QUOTA_BYTES", "-1", "'-1' is not a size"),
        ("EVENTHUB_QUOTA_BYTES", "0", "leave it empty for no quota"),
        ("EVENTHUB_DEBUG", "maybe", "is not true, yes, on, 1, false"),  # was: off
        ("EVENTHUB_LOG_FORMAT", "jsn", "'jsn' is not one of text, json"),  # was: text
        ("EVENTHUB_LOG_LEVEL", "verbose", "not one of debug, info, warning, error"),
        ("EVENTHUB_ALLOWED_HOSTS", "a.org,https://b.org", "'https://b.org' is not a host name"),
        ("EVENTHUB_ALLOWED_HOSTS", "a.org:8000", "without scheme and port"),  # would never match
        ("EVENTHUB_CORS_ORIGINS", "app.example.org", "is not an origin"),
        ("EVENTHUB_CORS_ORIGINS", "https://app.example.org/", "is not an origin"),
        ("EVENTHUB_ORIGINS", "hub.example.org", "is not an origin"),
        ("EVENTHUB_TRUSTED_PROXIES", "10.0.0.1/8", "10.0.0.1/8 has host bits set"),
        ("EVENTHUB_TRUSTED_PROXIES", "proxy", "not an address or a network"),
        ("EVENTHUB_CALLBACK_ALLOW", "http://x y", "host-or-CIDR"),
        ("EVENTHUB_SPARK_MEMORY", "2048", "with a unit"),
        ("SPARK_MASTER", "sprk://host:7077", "spark://host:7077"),
        ("DATABASE_URL", "mysql://u:secret@host/db", "postgresql://"),
        ("DATABASE_DIRECT_URL", "eventhub", "postgresql://"),
        ("DATABASE_URL", "postgresql://u:50%secret@h/d", "`%` as %25"),
        ("DATABASE_URL", "postgresql://u:secret/x@h/d", "percent-encode"),  # it was the port
        ("DATABASE_URL", "postgresql://u:p@secret@h/d", "percent-encode"),  # ... of the host's name
        ("DATABASE_DIRECT_URL", "postgresql://h/d?secret=1", "only parameters of libpq"),
        ("DATABASE_URL", "host=h password=a secret", "quote a value with spaces"),
        ("REDIS_URL", "redis://:secret/x@h/0", "percent-encode"),  # it was the port
        ("EVENTHUB_MARK_URL", "redis://:secret#x@h/0", "percent-encode"),
        ("REDIS_URL", "localhost:6379", "redis://"),
        ("EVENTHUB_RESTARTS_MAX", "many", "not a whole number of at least 0"),
        ("EVENTHUB_START_TIMEOUT_S", "0", "not a whole number of at least 1"),
        ("EVENTHUB_QUOTA_BYTES", "99999999999999999999PB", "at most 1PiB"),  # beyond bigint
        ("EVENTHUB_BACKLOG_BYTES", "2PiB", "at most 1PiB"),
        ("EVENTHUB_BACKLOG_EVENTS", "9" * 23, "from 1 to 1,000,000,000,000,000"),
        ("EVENTHUB_BACKLOG_AGE_S", "9" * 14, "from 1 to 3,162,240,000"),  # no interval is so long
        ("EVENTHUB_RESTARTS_MAX", "9" * 23, "not a whole number"),
        ("EVENTHUB_SECRET_KEY", "secret", "fewer than 32 characters"),
        ("EVENTHUB_QUOTA", "10GB", "did you mean EVENTHUB_QUOTA_BYTES?"),  # was: no quota
        ("EVENTHUB_DATABASE", "", "did you mean DATABASE_"),
        ("EVENTHUB_QUOTA_BYTE", "10GB", "did you mean EVENTHUB_QUOTA_BYTES?"),
        ("EVENTHUB_LOGLEVEL", "debug", "did you mean EVENTHUB_LOG_LEVEL?"),
        ("EVENTHUB_DATABASE_URL", "", "did you mean DATABASE_URL?"),
        ("EVENTHUB_SETTING_FILE", "", "did you mean EVENTHUB_SETTINGS_FILE?"),
    ],
)
def test_setting_that_cannot_be_read_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, said: str
) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(BadSettings) as refused:
        read_env()
    (line,) = str(refused.value).splitlines()
    assert line.startswith(name)
    assert said in line
    assert "secret" not in line


def test_variables_of_other_programs_are_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kubernetes describes a service `eventhub` to every container of its namespace."""
    names = ["EVENTHUB_PORT", "EVENTHUB_PORT_8000_TCP_ADDR", "EVENTHUB_SERVICE_HOST"]
    # the command-line client's, and those of the hub's own tests and benchmarks
    others = ("EVENTHUB_KEY", "EVENTHUB_CHAOS_KAFKA", "EVENTHUB_BENCH_NATS")
    for name in (*names, *others):
        monkeypatch.setenv(name, "tcp://10.0.0.1:8000")
    read_env()
    assert unknown_names(os.environ) == names


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ('database_url = "postgresql://db/e"', "database_url", "postgresql://db/e"),
        ('database_url = "postgresql://db/e"', "database_direct_url", "postgresql://db/e"),
        ('allowed_hosts = ["a.org", "b.org"]', "allowed_hosts", ("a.org", "b.org")),
        ('allowed_hosts = "a.org, b.org"', "allowed_hosts", ("a.org", "b.org")),
        ("allowed_hosts = []", "allowed_hosts", ()),
        ("quota_bytes = 10_000", "quota_bytes", 10_000),
        ('quota_bytes = "10GiB"', "quota_bytes", 10 << 30),
        ('quota_bytes = ""', "quota_bytes", None),
        ("backlog_age_s = 60", "backlog_age_s", 60),
        ("debug = true", "debug", True),
        ('debug = "on"', "debug", True),
        ('log_level = "Warning"', "log_level", "warning"),
        ('log_level = ""', "log_level", "info"),
        ('java_home = "/opt/java"', "java_home", "/opt/java"),
        ("", "data", "var"),
    ],
)
def test_setting_is_read_from_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, field: str, value: Any
) -> None:
    from_file(monkeypatch, tmp_path, text)
    assert getattr(read_env(), field) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("quota_byte = 1", "quota_byte is not a setting of the hub; did you mean quota_bytes?"),
        ("EVENTHUB_DEBUG = true", "EVENTHUB_DEBUG is not a setting of the hub; did you mean debug"),
        ("JAVAHOME = ''", "JAVAHOME is not a setting of the hub; did you mean java_home?"),
        ("quota = 1", "quota is not a setting of the hub; did you mean quota_bytes?"),
        ("[hub]\nport = 1", "hub is not a setting of the hub; docs/settings.md lists the settings"),
        ("quota_bytes = true", "quota_bytes: Expected `int | null`, got `bool`; write a size"),
        ("quota_bytes = 0", "quota_bytes: 0 is not a size"),
        ("backlog_events = 1.5", "backlog_events: Expected `int`, got `float`; write a whole"),
        ("backlog_events = 'many'", "backlog_events: 'many' is not a whole number"),
        ("debug = 1", "debug: Expected `bool`, got `int`; write true"),
        ("data = 2026-11-23", "data: Expected `str`, got `date`"),
        ("log_level = 5", "log_level: Expected `str`, got `int`; write one of debug"),
        ("allowed_hosts = ['a.org', 'b:80']", "allowed_hosts: 'b:80' is not a host name"),
        ("allowed_hosts = ['a.org', 5]", "got `int` - at `$[1]`; write a host name"),
        ("trusted_proxies = ['10.0.0.1/8']", "trusted_proxies: not an address or a network"),
        ("data = 'a\\u0000b'".replace("'", '"'), "data: it holds a NUL character"),
        ("database_url = ['secret']", "database_url: it must be postgresql://"),
        ("database_url = 'mysql://u:secret@h/d'", "database_url: it must be postgresql://"),
        ("secret_key = 5", "secret_key: it must be a text"),
        ("debug = true\nsecret_key = = 'secret'", "not TOML: Invalid value (at line 2, column 14)"),
        ("debug = true\ndebug = true", "not TOML: Cannot overwrite a value (at line 2"),
    ],
)
def test_mistake_in_a_file_is_refused_with_its_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, said: str
) -> None:
    file = from_file(monkeypatch, tmp_path, text)
    with pytest.raises(BadSettings) as refused:
        read_env()
    (line,) = str(refused.value).splitlines()
    assert line.startswith(f"{file}: ")
    assert said in line
    assert "'secret'" not in line
    assert "u:secret" not in line


def test_file_that_is_no_text_is_refused_with_the_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = from_file(monkeypatch, tmp_path, "")
    file.write_bytes(b"debug = true\n# caf\xe9\n")
    with pytest.raises(BadSettings, match=r"eventhub.toml: not UTF-8 \(at line 2\)"):
        read_env()


def test_environment_wins_over_the_file_and_the_file_over_the_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from_file(
        monkeypatch,
        tmp_path,
        "log_format = 'json'\nlog_level = 'debug'\narchive_url = '/file'\nquota_bytes = 5\n",
    )
    monkeypatch.setenv("EVENTHUB_LOG_FORMAT", "text")
    monkeypatch.setenv("EVENTHUB_LOG_LEVEL", "")  # as if it were not set
    monkeypatch.setenv("EVENTHUB_ARCHIVE_URL", "")  # no archive
    env, origins, _ = load()
    assert (env.log_format, env.log_level, env.archive_url) == ("text", "debug", "")
    assert (env.quota_bytes, env.data) == (5, "var")
    names = ("log_format", "log_level", "archive_url", "quota_bytes", "data")
    assert [origins[name] for name in names] == [
        *("environment", "file", "environment", "file", "default")
    ]


def test_mistake_in_the_file_is_refused_although_the_environment_wins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The mistake would only be noticed when somebody removes the variable."""
    from_file(monkeypatch, tmp_path, "quota_bytes = 'ten'")
    monkeypatch.setenv("EVENTHUB_QUOTA_BYTES", "10GB")
    with pytest.raises(BadSettings, match="quota_bytes: 'ten' is not a size"):
        read_env()


def test_change_of_the_file_takes_effect_at_the_next_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A request reads settings too, and must not fail while somebody edits the file."""
    file = from_file(monkeypatch, tmp_path, "quota_bytes = 5")
    assert read_env().quota_bytes == 5
    file.write_text("quota_bytes = ")
    assert read_env().quota_bytes == 5


def test_children_get_the_settings_of_the_file_in_their_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = """
        database_url = "postgresql://db/e"
        allowed_hosts = ["a.org", "[::1]"]
        cors_origins = []
        quota_bytes = "10GiB"
        backlog_events = 7
        debug = true
        log_level = "ERROR"
        restarts_max = 0
        start_timeout_s = 5
        archive_url = ""
    """
    file = from_file(monkeypatch, tmp_path, text)
    monkeypatch.setattr(os, "environ", {**os.environ, "EVENTHUB_BACKLOG_EVENTS": "9"})
    before = read_env()
    move_file_into_environment()
    file.unlink()
    assert "EVENTHUB_SETTINGS_FILE" not in os.environ
    assert os.environ["EVENTHUB_ARCHIVE_URL"] == ""
    assert "EVENTHUB_DATA" not in os.environ
    assert read_env() == before
    assert before.backlog_events == 9
    assert before.restarts_max == 0


def test_file_of_the_command_line_is_not_the_hubs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "config.toml"
    file.write_text('url = "http://127.0.0.1:8000"\nkey = "k"\n')
    monkeypatch.setenv("EVENTHUB_CONFIG", str(file))
    assert read_env().data == "var"


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("postgresql://u:pw@db:5432/e", "postgresql://…@db:5432/e"),
        ("postgresql://u@/e?host=/run&password=pw", "postgresql://…@/e?…"),
        ("redis://:pw@[::1]:6379/0", "redis://…@[::1]:6379/0"),
        ("unix:///run/redis.sock", "unix:///run/redis.sock"),
        ("s3://bucket/hub", "s3://bucket/hub"),
        ("./archive", "./archive"),
        ("host=db password=pw", HIDDEN),
        ("postgresql://u:p/w@db/e", HIDDEN),  # not encoded: where the password ends is not known
        ("postgresql://u:p?w@db/e", HIDDEN),
        ("postgresql://u:p#w@db/e", HIDDEN),
        ("postgresql://u:p@w@db/e", HIDDEN),
        ("postgresql://db/e?password=p@w", HIDDEN),
        ("simplecache::s3://key:pw@bucket", HIDDEN),
        ("/archive:pw@x", HIDDEN),
    ],
)
def test_url_is_rendered_without_its_password(text: str, rendered: str) -> None:
    assert without_login(text) == rendered
