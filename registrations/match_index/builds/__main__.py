"""The process of a builder: `python -m registrations.match_index.builds STREAM_ID` builds one match
index and reports the outcome as a line of JSON on its standard output (task.py). Plain module.
"""

import signal
import sys
from pathlib import Path

from eventhub.base import limits, logs
from eventhub.base.clock import SystemClock
from eventhub.base.env import Env, read_env
from eventhub.base.errors import EventHubError
from registrations.match_index.builds.build import INTERNAL, BuildOrder, build
from registrations.match_index.builds.builder_lock import builder_lock, lower_priority
from registrations.match_index.builds.task import BUILT, BUSY, BuildReport


def main() -> None:
    lower_priority()
    signal.alarm(limits.INDEX_BUILD_S_MAX)  # ends the process, also if its parent has gone
    env = read_env()
    logs.configure(env.log_format, env.log_level)
    report = _built(env, int(sys.argv[1]))
    sys.stdout.write(report.line() + "\n")


def _built(env: Env, stream_id: int) -> BuildReport:
    data, clock = Path(env.data), SystemClock()
    log = logs.get_logger(__name__)
    try:
        with builder_lock(data, wait=False) as ours:
            if not ours:
                return BuildReport(BUSY)
            began_s = clock.monotonic_s()
            manifest = build(BuildOrder(env.database_direct_url, data, stream_id))
    except EventHubError as error:
        log.warning("index_not_built", stream=stream_id, reason=error.code, detail=error.message)
        return BuildReport(error.code)
    except Exception:
        log.exception("index_not_built", stream=stream_id)
        return BuildReport(INTERNAL)
    seconds = clock.monotonic_s() - began_s
    log.info("index_built", stream=stream_id, epoch=manifest.epoch, registrations=manifest.ids)
    return BuildReport(BUILT, seconds, manifest.ids)


if __name__ == "__main__":
    main()
