"""`killed_migrate.py APP MIGRATION METHOD [WORD ...]`: `manage.py migrate WORDS`, killed by kill -9
where the migration's statements were carried out and the method of the recorder is to record it.
"""

import os
import signal
import sys
from typing import Any

from django.core.management import execute_from_command_line
from django.db.migrations.recorder import MigrationRecorder


def main() -> None:
    app, name, method, *words = sys.argv[1:]
    record = getattr(MigrationRecorder, method)

    def killed(self: MigrationRecorder, *which: str) -> Any:
        if which == (app, name):
            os.kill(os.getpid(), signal.SIGKILL)
        return record(self, *which)

    setattr(MigrationRecorder, method, killed)
    execute_from_command_line(["manage.py", "migrate", *words])


if __name__ == "__main__":
    main()
