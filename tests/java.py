"""The options of the tests' JVMs. `python -m tests.java FILE` archives the classes that Spark
loads, so that JVMs map them: loading them is half the cost of a short job.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from sparkjobs.runs.java import find_java, home_of

CLASSES = Path(sys.prefix, "share", "spark-classes.jsa")
# tests run each query once on a few rows: to generate code for it, or to optimize it, takes longer
INTERPRETED = "-Dspark.sql.codegen.wholeStage=false -Dspark.sql.codegen.factoryMode=NO_CODEGEN"
# a sort of a few rows would allocate, and clear, a page of 32 MB; and the plan of each query would
# be written out in full for a UI that is off
SMALL = "-Dspark.buffer.pageSize=1m -Dspark.sql.ui.explainMode=simple"
# with one compiler, Java would keep 48 MB of compiled code, which a few dozen jobs exceed: it would
# then discard methods and compile them again
QUICK = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -XX:-UsePerfData"
OPTIONS = f"{INTERPRETED} {SMALL} {QUICK}"
# an archive of another Java or of other packages is ignored silently
_MAPPED = f"-XX:SharedArchiveFile={CLASSES} -Xlog:disable -Xlog:all=error:stderr"
_JOB = """
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as sf

spark = SparkSession.builder.getOrCreate()
rows = spark.range(100).select("id", (sf.col("id") % 7).alias("k"), sf.array("id").alias("all"))
rows = rows.mapInArrow(lambda batches: batches, rows.schema).repartition(2, "k")
rows.write.parquet(FOLDER + "/rows")
rows = spark.read.parquet(FOLDER + "/rows")
last = sf.lag("id").over(Window.partitionBy("k").orderBy("id"))
each = rows.withColumn("last", last).where("last is null").select("k", sf.explode("all"))
most = sf.max(sf.struct("id", "k"))
counted = rows.groupBy("k").agg(most, sf.percentile_approx("id", 0.5))
joined = counted.join(each, "k", "full_outer").join(sf.broadcast(rows), "k", "left_semi")
joined.unionByName(joined).distinct().orderBy("k").limit(5).write.parquet(FOLDER + "/joined")
assert spark.read.parquet(FOLDER + "/joined").count() == 5
spark.stop()
"""


def options() -> str:
    """Return the value of JAVA_TOOL_OPTIONS."""
    return f"{OPTIONS} {_MAPPED}" if CLASSES.is_file() else OPTIONS


def main(file: Path) -> None:
    print("archiving Spark's classes for the tests")
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder, "job.py")
        job.write_text(f"FOLDER = {folder!r}\n{_JOB}")
        made = Path(folder, file.name)
        spark = Path(find_spec("pyspark").origin).parent  # type: ignore[union-attr,arg-type]
        settings = {
            "spark.master": "local[1]",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.extraJavaOptions": f"-XX:ArchiveClassesAtExit={made} -Xlog:disable",
            "spark.log.level": "ERROR",
            "spark.local.dir": f"{folder}/local",
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
            "spark.ui.enabled": "false",
        }
        words = [f"--conf={name}={value}" for name, value in settings.items()]
        home = home_of(find_java(os.environ.get("JAVA_HOME", "")), Path(folder, "java"))
        env = {"JAVA_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
        env["JAVA_TOOL_OPTIONS"] = OPTIONS
        done = subprocess.run(
            [spark / "bin" / "spark-submit", *words, job],
            env={**os.environ, **env},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            sys.exit(f"{done.stderr[-4_000:]}\nThe job that archives classes failed.")
        shutil.move(made, file)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
