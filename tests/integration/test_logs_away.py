"""What processes log while the database is away: a line now and then, not one for each attempt.

The story: ten lines a second and worker, for as long as the database was away.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from eventhub import limits
from eventhub.up.hub import HOME, celery_worker

AWAY_S = 3.0


def test_an_absent_database_is_logged_now_and_then(tmp_path: Path) -> None:
    env = {
        **os.environ,
        "DATABASE_URL": f"postgresql://nobody@/nothing?host={tmp_path}",
        "DATABASE_DIRECT_URL": "",
        "REDIS_URL": "",
        "EVENTHUB_DATA": str(tmp_path),
        "EVENTHUB_SECRET_KEY": "key",
    }
    commands = {"worker": celery_worker("w@%h"), "forward": ("manage.py", "forward")}
    logs = {name: tmp_path / f"{name}.log" for name in commands}
    processes = []
    try:
        for name, argv in commands.items():
            with logs[name].open("wb") as output:
                processes.append(
                    subprocess.Popen([sys.executable, *argv], cwd=HOME, env=env,
                                     stdout=output, stderr=output)
                )  # fmt: skip
        until_s = time.monotonic() + 40
        while not all(log.read_text().strip() for log in logs.values()):
            assert time.monotonic() < until_s
            time.sleep(0.05)
        begins = {name: len(log.read_text().splitlines()) for name, log in logs.items()}
        time.sleep(AWAY_S)  # what is counted is what comes in a time
        for name, log in logs.items():
            lines = log.read_text().splitlines()[begins[name] :]
            assert len(lines) <= 8 + AWAY_S / limits.LOG_REPEAT_S, "\n".join(lines)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(15)
