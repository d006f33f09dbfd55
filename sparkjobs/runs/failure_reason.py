"""The reason why a driver failed, extracted from the last lines of its log. Plain module.

The first error is not always the reason: Java nests errors, and Spark continues after some.
"""

import re
import signal
from collections.abc import Sequence

from eventhub.base import limits
from eventhub.eventlog.archive.folder import without_credentials

# Python's and Java's: a class and its message. A plain `Error: ...` comes from programs.
_ERROR = re.compile(
    r'(?!Error: )(?:Exception in thread "[^"]*" |: )?'
    r"(?:[\w.$]+\.)?(\w*(?:Error|Exception|Failure|Unreadable)\w*): (.+)"
)
_BRIDGES = ("Py4JJavaError", "SparkUserAppException")  # report that Java failed, never why
_WRAPPERS = (*_BRIDGES, "SparkException")
_AFTERWARDS = "Cannot call methods on a stopped SparkContext"  # a consequence of any stop
_ENDED = re.compile(r"Application has been killed\. Reason: (.+)")
_UNREACHED = re.compile(r"Failed to connect to master (\S+)")
# lines without a reason: stack frames, notes, and Java's own end
_NOISE = re.compile(
    r"\s|at |\d\d/\d\d/\d\d \d\d:\d\d:\d\d (?:INFO|WARN) |WARNING: |Using Spark's default |"
    r'Setting Spark log level |Traceback |Exception in thread "[^"]*"$|'
    r"Error: (?:Could not create the Java|A fatal exception has occurred)"
)
_PATH = re.compile(r"(?<![\w:/.])(?:file:)?(?:/+[\w.@+=,%-]+){2,}")


def failure_reason(lines: Sequence[str], status: int) -> str:
    """Return the reason as a text. `lines`: the last ones of the log, without line ends; `status`:
    the driver's exit status, negative if its guardian was killed.
    """
    error = _by_cluster(lines) or _last_error(lines)
    killer = _killer(status)
    if killer:
        before = f" Before that: {error}" if error else ""
        reason = f"The driver was killed ({killer}); the log has its last steps.{before}"
    else:
        reason = error or _last_message(lines)
    return f"{_redact(reason)[: limits.JOB_DETAIL_CHARS_MAX]} (status {status})"


def _by_cluster(lines: Sequence[str]) -> str:
    """Return why a standalone cluster ended the job, or that its master was never reached."""
    reasons = [found[1] for line in lines if (found := _ENDED.search(line))]
    masters = [found[1] for line in lines if (found := _UNREACHED.search(line))]
    if not reasons:
        return ""
    if masters and "masters are unresponsive" in reasons[-1]:
        return (
            f"The Spark master {masters[-1]} was unreachable or refused the hub: check that it runs"
            " at SPARK_MASTER with the same secret."
        )
    return f"The Spark cluster ended the job: {reasons[-1]}"


def _last_error(lines: Sequence[str]) -> str:
    """Return the last error among the most specific ones."""
    errors = [found for line in lines if (found := _ERROR.match(line))]
    errors = [error for error in errors if _AFTERWARDS not in error[2]]
    for vague in (_WRAPPERS, _BRIDGES, ()):
        specific = [error for error in errors if error[1] not in vague]
        if specific:
            return f"{specific[-1][1]}: {specific[-1][2]}"
    return ""


def _last_message(lines: Sequence[str]) -> str:
    written = [line for line in lines if line.strip()]
    messages = [line for line in written if not _NOISE.match(line)]
    if messages:
        return messages[-1]
    return "The log contains no reason." if written else "The log is empty."


def _killer(status: int) -> str:
    """Return the signal that ended the driver or its guardian; empty if none did."""
    number = -status if status < 0 else status - 128
    return signal.Signals(number).name if number in {*signal.Signals} else ""


def _redact(text: str) -> str:
    """Remove folders and credentials; of a path only the last name remains."""
    text = without_credentials(text.replace("\0", ""))
    return _PATH.sub(lambda match: match[0].rpartition("/")[2], text)
