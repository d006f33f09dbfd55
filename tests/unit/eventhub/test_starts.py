"""The start of processes: what they load before they serve."""

import subprocess
import sys

from eventhub.supervisor.hub import HOME

PROGRAM = """
import sys
import eventhub.asgi, eventhub.celery, eventhub.management.commands.forward
rare = {"numpy", "pandas", "pyarrow", "pyspark"}
print(*sorted({name.partition(".")[0] for name in sys.modules} & rare))
"""


def test_processes_load_numpy_and_what_reads_archives_and_spark_when_they_use_it() -> None:
    """Each took a tenth or more of the start of every process, most of which never use it."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=HOME, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
