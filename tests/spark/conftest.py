"""A minimal SparkSession in this process, shared by all tests of the jobs."""

import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkjobs.runs.java import find_java, home_of
from sparkjobs.runs.launch import QUICK_PLANS
from tests.spark.history import JobHistory


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Return a session that binds to loopback and writes only below a temporary folder."""
    logging.getLogger("py4j").setLevel(logging.WARNING)  # it logs when the session ends
    os.environ["PYSPARK_PYTHON"] = sys.executable
    folder = tmp_path_factory.mktemp("spark")
    java = find_java(os.environ.get("JAVA_HOME", ""))
    os.environ["JAVA_HOME"] = str(home_of(java, folder / "java"))
    settings = {
        "spark.master": "local[1]",
        # generated code would run only once
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **QUICK_PLANS,
    }
    builder = SparkSession.builder.appName("tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def history(tmp_path: Path) -> JobHistory:
    """Return a history without faults, not yet written."""
    return JobHistory(tmp_path)
