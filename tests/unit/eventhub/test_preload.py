"""What the fork server loads before it forks the hub's processes."""

import json
import os
import subprocess
import sys

from eventhub.base.config import SETTINGS
from tests.forked import HOME

# reports what reads a setting while it is imported, and what is left after it
PROGRAM = """
import json, os, sys
OWN = ("eventhub", "registrations", "delivery", "sparkjobs")
known = set(json.loads(sys.argv[1]))
readers = set()
read = os._Environ.__getitem__

def noted(self, name):
    if name in known:
        frame = sys._getframe(1)
        while frame is not None:
            module = frame.f_globals.get("__name__", "")
            if frame.f_code.co_name == "<module>":
                if module.partition(".")[0] in OWN:
                    readers.add(module)
                break
            frame = frame.f_back
    return read(self, name)

os._Environ.__getitem__ = noted
import eventhub.preload
print(json.dumps({
    "readers": sorted(readers),
    "threads": os.listdir("/proc/self/task").__len__(),
    "sockets": [fd for fd in os.listdir("/proc/self/fd")
                if os.path.exists(f"/proc/self/fd/{fd}") is False
                and os.path.lexists(f"/proc/self/fd/{fd}")
                and "socket:" in os.readlink(f"/proc/self/fd/{fd}")],
}))
"""


def test_what_is_loaded_depends_on_no_setting_and_is_safe_to_fork() -> None:
    """Their values are taken again after the fork by `adopt_environment`, which knows these. A
    thread would be missing after a fork, and a connection would be used by two processes.
    """
    variables = json.dumps([setting.variable for setting in SETTINGS.values()])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, variables],
        cwd=HOME, env=dict(os.environ), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found == {
        "readers": ["eventhub.celery", "eventhub.settings"],
        "threads": 1,
        "sockets": [],
    }
