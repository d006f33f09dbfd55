"""Settings of the hub's programs: they print them, pass them on to their children, and end with a
line for each invalid one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from eventhub.base.setting import HIDDEN
from tests.unit.eventhub.base.test_env import none_set as none_set  # for all tests here too
from tests.unit.eventhub.supervisor.test_commands import manage


def test_every_invalid_setting_has_its_line_and_no_traceback() -> None:
    wrong = {"EVENTHUB_QUOTA_BYTES": "10Gb!", "EVENTHUB_DEBUG": "maybe", "EVENTHUB_LOGFORMAT": ""}
    done = manage("up", **wrong)
    assert done.returncode == os.EX_CONFIG
    lines = done.stderr.splitlines()
    assert [line.split(":")[0].split()[0] for line in lines] == [
        "EVENTHUB_LOGFORMAT",
        "EVENTHUB_QUOTA_BYTES",
        "EVENTHUB_DEBUG",
        "See",
    ]


def test_settings_are_listed_with_their_origin_and_without_secrets(tmp_path: Path) -> None:
    file = tmp_path / "eventhub.toml"
    key = "/geheim" * 5
    file.write_text(f'database_url = "postgresql://u:geheim@db/e"\nsecret_key = "{key}"\n')
    done = manage("settings", EVENTHUB_SETTINGS_FILE=str(file), EVENTHUB_QUOTA_BYTES="10GB")
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["EVENTHUB_SETTINGS_FILE:", str(file)] in lines
    assert ["DATABASE_URL", "database_url", "file", "postgresql://…@db/e"] in lines
    assert ["EVENTHUB_SECRET_KEY", "secret_key", "file", HIDDEN] in lines
    assert ["EVENTHUB_QUOTA_BYTES", "quota_bytes", "environment", "10000000000"] in lines
    assert ["EVENTHUB_RESTARTS_MAX", "restarts_max", "default", "-"] in lines
    assert "geheim" not in done.stdout + done.stderr


@pytest.mark.parametrize("command", [("settings", "--check"), ("forward",), ("up",)])
def test_password_that_is_not_encoded_is_refused_and_hidden(command: tuple[str, ...]) -> None:
    """The message of libpq has the password, and a traceback had the message."""
    done = manage(*command, DATABASE_URL="postgresql://u:50%geheim@h/d")
    assert done.returncode == os.EX_CONFIG
    assert "percent-encode" in done.stderr
    assert len(done.stderr.splitlines()) == 2
    assert "geheim" not in done.stdout + done.stderr


@pytest.mark.parametrize("command", [("settings", "--check"), ("up",)])
def test_bad_callback_address_is_refused_with_one_line(command: tuple[str, ...]) -> None:
    """Django's traceback ended the process, with status 1."""
    done = manage(*command, EVENTHUB_CALLBACK_ALLOW="10.1.0.0/16,[::1")
    assert (done.returncode, done.stdout) == (os.EX_CONFIG, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("EVENTHUB_CALLBACK_ALLOW: '[::1' is not [ZONE=]host-or-CIDR[:port]")


@pytest.mark.parametrize("command", [("settings", "--check"), ("up",)])
def test_process_with_a_bad_file_ends_with_a_line_for_each_mistake(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    file = tmp_path / "eventhub.toml"
    file.write_text("quota_byte = 1\ndebug = 5\n")
    done = manage(*command, EVENTHUB_SETTINGS_FILE=str(file), EVENTHUB_LOG_LEVEL="loud")
    assert done.returncode == os.EX_CONFIG
    assert done.stdout == ""
    starts = [f"{file}: quota_byte is", "EVENTHUB_LOG_LEVEL: 'loud' is", f"{file}: debug: Expected"]
    lines = done.stderr.splitlines()
    assert len(lines) == 4
    for line, start in zip(lines, [*starts, "See docs/settings.md"], strict=True):
        assert line.startswith(start)


def test_process_that_serves_passes_the_file_on_to_its_children(tmp_path: Path) -> None:
    file = tmp_path / "eventhub.toml"
    key = "k" * 32
    file.write_text(
        f'database_url = "postgresql://e@/e?host={tmp_path}"\nsecret_key = "{key}"\n'
        f'redis_url = "unix://{tmp_path}/r.sock"\n'
    )
    script = (
        "import os; from eventhub.preflight import settings_or_exit; settings_or_exit();"
        " print(os.environ['EVENTHUB_SECRET_KEY'], 'EVENTHUB_SETTINGS_FILE' in os.environ)"
    )
    own = ("DATABASE_URL", "REDIS_URL")
    env = {name: text for name, text in os.environ.items() if name not in own}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**env, "EVENTHUB_SETTINGS_FILE": str(file)},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.stdout == f"{key} False\n", done.stderr


def test_restore_takes_the_database_from_the_file(tmp_path: Path) -> None:
    """The programs that it starts read only the environment."""
    file = tmp_path / "eventhub.toml"
    file.write_text(f'database_url = "postgresql://e@/e?host={tmp_path}"\n')
    done = manage("restore", str(tmp_path / "absent"), EVENTHUB_SETTINGS_FILE=str(file))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert str(tmp_path / "absent") in done.stderr


def test_check_reports_whether_the_settings_are_valid(tmp_path: Path) -> None:
    good = manage("settings", "--check")
    assert (good.returncode, good.stdout) == (0, "The settings are valid.\n")
    absent = str(tmp_path / "absent")
    bad = manage("settings", "--check", EVENTHUB_STORE_DIR=absent)
    assert bad.returncode == os.EX_CONFIG
    assert bad.stderr == (
        f"EVENTHUB_STORE_DIR: {absent} is not a folder, so its disk cannot be monitored.\n"
    )
    nowhere = manage("up", EVENTHUB_SETTINGS_FILE=absent)
    assert nowhere.returncode == os.EX_CONFIG
    assert nowhere.stderr.startswith(
        f"EVENTHUB_SETTINGS_FILE: {absent} cannot be read: No such file or directory\n"
    )
