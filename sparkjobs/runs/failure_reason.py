"""Why a driver failed, out of the last lines of its log. Plain module.

Not the first thing that looks like an error: Java wraps errors in errors, and Spark goes on after
some of them.
"""

import re
import signal
from collections.abc import Sequence

from eventhub.base import limits
from eventhub.eventlog.archive.folder import without_credentials

# Python's and Java's: a class and what it says. `Error: ...` alone is said by programs.
_ERROR = re.compile(
    r'(?!Error: )(?:Exception in thread "[^"]*" |: )?'
    r"(?:[\w.$]+\.)?(\w*(?:Error|Exception|Failure|Unreadable)\w*): (.+)"
)
_BRIDGES = ("Py4JJavaError", "SparkUserAppException")  # say that Java failed, never why
_WRAPPERS = (*_BRIDGES, "SparkException")
_AFTERWARDS = "Cannot call methods on a stopped SparkContext"  # whatever stopped it
_ENDED = re.compile(r"Application has been killed\. Reason: (.+)")
_UNREACHED = re.compile(r"Failed to connect to master (\S+)")
# What says nothing of why: places in the code, notes, and that Java has ended
_NOISE = re.compile(
    r"\s|at |\d\d/\d\d/\d\d \d\d:\d\d:\d\d (?:INFO|WARN) |WARNING: |Using Spark's default |"
    r'Setting Spark log level |Traceback |Exception in thread "[^"]*"$|'
    r"Error: (?:Could not create the Java|A fatal exception has occurred)"
)
_PATH = re.compile(r"(?<![\w:/.])(?:file:)?(?:/+[\w.@+=,%-]+){2,}")


def why_failed(lines: Sequence[str], status: int) -> str:
    """In words. `lines`: the last of the log, without their ends; `status`: the driver's, negative
    if its guardian was killed.
    """
    error = _by_cluster(lines) or _last_error(lines)
    killer = _killer(status)
    if killer:
        before = f" Before that: {error}" if error else ""
        found = f"Its process was killed ({killer}); the log says what it did last.{before}"
    else:
        found = error or _last_said(lines)
    return f"{_shown(found)[: limits.JOB_DETAIL_CHARS_MAX]} (status {status})"


def _by_cluster(lines: Sequence[str]) -> str:
    """A standalone cluster's word of the end, if it has ended the job or was never reached."""
    reasons = [found[1] for line in lines if (found := _ENDED.search(line))]
    masters = [found[1] for line in lines if (found := _UNREACHED.search(line))]
    if not reasons:
        return ""
    if masters and "masters are unresponsive" in reasons[-1]:
        return (
            f"Spark's master {masters[-1]} was not reached, or did not let the hub in: see whether"
            " it runs, where SPARK_MASTER says, with the same secret."
        )
    return f"Spark's cluster ended the job: {reasons[-1]}"


def _last_error(lines: Sequence[str]) -> str:
    """The one that was told last, of those that say the most."""
    errors = [found for line in lines if (found := _ERROR.match(line))]
    errors = [error for error in errors if _AFTERWARDS not in error[2]]
    for vague in (_WRAPPERS, _BRIDGES, ()):
        told = [error for error in errors if error[1] not in vague]
        if told:
            return f"{told[-1][1]}: {told[-1][2]}"
    return ""


def _last_said(lines: Sequence[str]) -> str:
    written = [line for line in lines if line.strip()]
    told = [line for line in written if not _NOISE.match(line)]
    if told:
        return told[-1]
    return "It did not say why; its log has all that it said." if written else "It said nothing."


def _killer(status: int) -> str:
    """The signal that ended the driver, or its guardian; empty if none did."""
    number = -status if status < 0 else status - 128
    return signal.Signals(number).name if number in {*signal.Signals} else ""


def _shown(text: str) -> str:
    """Without folders and credentials: of a path its last name."""
    text = without_credentials(text.replace("\0", ""))
    return _PATH.sub(lambda match: match[0].rpartition("/")[2], text)
