"""Commands of manage.py refuse wrong arguments at once, with a message instead of a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from eventhub.supervisor.hub import HOME


def manage(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    given = {k: v for k, v in os.environ.items() if not k.startswith(("DATABASE_", "PG"))}
    return subprocess.run(
        [sys.executable, str(HOME / "manage.py"), *words],
        env={**given, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--port", "99999"), "'99999' is not a whole number from 0 to 65535"),
        (("--port", "-1"), "'-1' is not a whole number from 0 to 65535"),
        (("--port", "http"), "'http' is not a whole number from 0 to 65535"),
        (("--web", "0"), "'0' is not a whole number of at least 1"),
        (("--web", "-1"), "'-1' is not a whole number of at least 1"),
        (("--restarts", "-1"), "'-1' is not a whole number of at least 0"),
    ],
)
def test_numbers_out_of_bounds_are_refused_before_anything_starts(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    with pytest.raises(CommandError, match=said):
        call_command("up", "--data", str(tmp_path / "data"), *words)
    assert not (tmp_path / "data").exists()


def test_up_ends_with_a_status_and_no_traceback(tmp_path: Path) -> None:
    done = manage("up", "--data", str(tmp_path / "data"), "--port", "99999")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("is not a whole number from 0 to 65535")


@pytest.mark.parametrize("words", [("createkey", "shop", "--grant", "emit:*"), ("demo",)])
def test_commands_without_database_url_say_where_to_find_it(words: tuple[str, ...]) -> None:
    """The commands hung for the pool's timeout and ended with a traceback of PoolTimeout."""
    done = manage(*words)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "export DATABASE_URL=" in line


@pytest.mark.slow
def test_createkey_reports_that_the_hub_does_not_run(tmp_path: Path) -> None:
    done = manage("createkey", "shop", DATABASE_URL=f"postgresql://e@/e?host={tmp_path}")
    assert done.returncode == 1
    assert "is the hub running?" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
