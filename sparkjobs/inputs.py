"""A run's input tables as DataFrames, with the columns that `tables.py` declares. Spark module."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from sparkjobs.job_spec import JobSpec
from sparkjobs.tables import TABLES


def table(spark: SparkSession, spec: JobSpec, name: str) -> DataFrame:
    """Return one input table; an empty one still has its columns."""
    schema = from_arrow_schema(TABLES[name])
    return spark.read.schema(schema).parquet(spec.table(name))
