"""One SparkSession for all tests of the jobs, in this process, as small as it can be."""

import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkjobs.runs.java import find_java, home_of
from tests.spark.history import History


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Loopback, no screens, nothing written outside of a temporary folder."""
    logging.getLogger("py4j").setLevel(logging.WARNING)  # it tells of its end when nobody listens
    os.environ["PYSPARK_PYTHON"] = sys.executable
    folder = tmp_path_factory.mktemp("spark")
    java = find_java(os.environ.get("JAVA_HOME", ""))
    os.environ["JAVA_HOME"] = str(home_of(java, folder / "java"))
    settings = {
        "spark.master": "local[1]",
        # what is compiled here runs once
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
    }
    builder = SparkSession.builder.appName("tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def history(tmp_path: Path) -> History:
    """A hub where all is well, not yet written."""
    return History(tmp_path)
