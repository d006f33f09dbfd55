"""The archiver's process: `python -m eventhub.eventlog.archive` archives due segments and reports
each as a line of JSON on standard output (process.py). Plain module.
"""

import os
import signal
import sys

from eventhub.base import logs
from eventhub.base.clock import SystemClock
from eventhub.base.env import read_env
from eventhub.base.errors import EventHubError
from eventhub.eventlog.archive.archiver import ArchiveLeaseLost, ArchiverStopped, open_archiver
from eventhub.eventlog.archive.catalog import SegmentFilter
from eventhub.eventlog.archive.process import SegmentReport

_NICENESS = 10  # processes with waiting clients come first


def main() -> None:
    os.nice(_NICENESS)
    env = read_env()
    logs.configure(env.log_format, env.log_level)
    try:
        with open_archiver(env.archive_url, env.database_direct_url, SystemClock()) as archiver:
            signal.signal(signal.SIGTERM, lambda _number, _frame: archiver.stop())
            for done in archiver.run(SegmentFilter()):
                report = SegmentReport(done.segment.uuid, done.events, done.file_bytes, done.reason)
                sys.stdout.write(report.line() + "\n")
                sys.stdout.flush()  # fails, and ends this process, if the parent has ended
    except (ArchiveLeaseLost, ArchiverStopped):
        return
    except EventHubError as error:
        logs.get_logger(__name__).warning(
            "archiving_failed", reason=error.code, detail=error.message
        )
        sys.exit(1)


if __name__ == "__main__":
    main()
