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

CONVERSIONS = """
import sys
from eventhub.base.arrow import leave_pandas_out
leave_pandas_out()
import pyarrow as pa
numbers = pa.array([1, 2])
assert pa.scalar("text").as_py() == "text"
print("pandas" in sys.modules, numbers.to_pandas().sum(), "pandas" in sys.modules)
"""


def test_processes_load_numpy_and_what_reads_archives_and_spark_when_they_use_it() -> None:
    """Each took a tenth or more of the start of every process, most of which never use it."""
    assert _printed(PROGRAM) == []


def test_values_become_columns_without_pandas_until_pandas_is_used() -> None:
    assert _printed(CONVERSIONS) == ["False", "3", "True"]


def _printed(program: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=HOME, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()
