"""The start of processes: what they load before they serve."""

import subprocess
import sys

import pytest

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

SNAPSHOT = """
from eventhub.base.errors import DatabaseUnavailable
from eventhub.postgresql.arrow import ArrowSnapshot
try:
    ArrowSnapshot("host=127.0.0.1 port=1", name="test", statement_s_max=1)
except DatabaseUnavailable:
    pass
"""
JOBS = "from sparkjobs.backtest import local; from sparkjobs.runs import execute"
SINK = "from registrations.sinks.files import FORMATS; FORMATS['parquet'].write([])"
LOADED = "\nimport sys; print('pyarrow' in sys.modules, 'pandas' in sys.modules)"


def test_processes_load_numpy_and_what_reads_archives_and_spark_when_they_use_it() -> None:
    """Each took a tenth or more of the start of every process, most of which never use it."""
    assert _printed(PROGRAM) == []


def test_values_become_columns_without_pandas_until_pandas_is_used() -> None:
    assert _printed(CONVERSIONS) == ["False", "3", "True"]


@pytest.mark.parametrize("program", [SNAPSHOT, JOBS, SINK])
def test_what_uses_arrow_loads_no_pandas(program: str) -> None:
    """The driver of snapshots imports `pyarrow.dataset`, and that pandas: 0.2 s of CPU, 40 MB."""
    assert _printed(program + LOADED) == ["True", "False"]


def _printed(program: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=HOME, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()
