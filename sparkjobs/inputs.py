"""The run's tables as DataFrames, with the columns that `tables.py` declares. Spark module."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from sparkjobs.job_spec import JobSpec
from sparkjobs.tables import TABLES


def table(spark: SparkSession, order: JobSpec, name: str) -> DataFrame:
    """One table of the inputs. An empty one has its columns too."""
    schema = from_arrow_schema(TABLES[name])
    return spark.read.schema(schema).parquet(order.table(name))
