"""Logging while the database is unreachable: a line now and then, not one for each attempt.

Each worker once logged ten lines a second for as long as the database was unreachable. With Redis,
tasks arrive and fail as well.
"""

import os
import sys
import time
from pathlib import Path

import pytest

from eventhub.base import limits
from eventhub.base.broker import ARCHIVE, BUILD_INDEXES, RUN_JOBS, send_task
from eventhub.supervisor.hub import CELERY, celery_worker
from tests.forked import Started
from tests.integration.delivery.test_callbacks_worker import Broker

AWAY_S = 3.0


@pytest.mark.parametrize("has_redis", [False, True])
def test_an_unreachable_database_is_logged_rarely(tmp_path: Path, has_redis: bool) -> None:
    redis_server = Broker(tmp_path)
    redis_server.start()
    env = {
        **os.environ,
        "DATABASE_URL": f"postgresql://nobody@/nothing?host={tmp_path}",
        "DATABASE_DIRECT_URL": "",
        "REDIS_URL": redis_server.url if has_redis else "",
        "EVENTHUB_DATA": str(tmp_path),
        "EVENTHUB_SECRET_KEY": "k" * 40,
    }
    commands = {"worker": celery_worker("w@%h"), "forward": ("manage.py", "forward")}
    if has_redis:
        beat = ("-s", str(tmp_path / "beat"), "--pidfile", "")
        commands["beat"] = (*CELERY, "beat", *beat)
    logs = {name: tmp_path / f"{name}.log" for name in commands}
    processes = []
    try:
        for name, argv in commands.items():
            with logs[name].open("wb") as output:
                processes.append(Started([sys.executable, *argv], env, output))
        until_s = time.monotonic() + 40
        while not all(log.read_text().strip() for log in logs.values()):
            assert time.monotonic() < until_s
            time.sleep(0.05)
        begins = {name: len(log.read_text().splitlines()) for name, log in logs.items()}
        for _ in range(10 if has_redis else 0):
            for task in (ARCHIVE, BUILD_INDEXES, RUN_JOBS, "delivery.deliver"):
                send_task(task, redis_server.url)
        time.sleep(AWAY_S)  # what is counted is what comes in a time
        for name, log in logs.items():
            lines = log.read_text().splitlines()[begins[name] :]
            assert len(lines) <= 11 + AWAY_S / limits.LOG_REPEAT_S, "\n".join(lines)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(15)
        redis_server.kill()
