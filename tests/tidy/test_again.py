"""The second run of tests that failed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.again import AGAIN_MAX

HOME = Path(__file__).resolve().parents[2]
ONCE = """
from pathlib import Path

def test_fails_once():
    seen = Path("seen")
    first = not seen.exists()
    seen.touch()
    assert not first
"""
MANY = AGAIN_MAX + 1
ALWAYS = "def test_fails_always():\n    raise AssertionError\n"


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", *words]
    # these tests need no plugin, and loading them takes most of the time
    env = os.environ | {"PYTHONPATH": str(HOME), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        argv, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "first", "second", "text"),
    [
        ({"once": ONCE}, 1, 0, "UNSTEADY"),
        ({"always": ALWAYS}, 1, 1, "once more, alone: 1"),
        ({"always": ALWAYS, "once": ONCE}, 1, 1, "once more, alone: 2"),
        ({"once": ONCE, "unreadable": "("}, 2, 2, ""),
        (
            {f"once{number}": ONCE.replace("seen", f"seen{number}") for number in range(MANY)},
            1,
            1,
            "",
        ),
    ],
    ids=["passes alone", "fails again", "one of two fails again", "cannot be loaded", "too many"],
)
def test_few_failures_are_run_again(
    tmp_path: Path, files: dict[str, str], first: int, second: int, text: str
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    for name, source in files.items():
        (tmp_path / f"test_{name}.py").write_text(source)
    status = run(tmp_path, "pytest", "-q").returncode
    assert status == first
    again = run(tmp_path, "tests.again", str(status))
    assert again.returncode == second, again.stdout + again.stderr
    assert text in again.stdout
    assert bool(again.stdout) == bool(text)
