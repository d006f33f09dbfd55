"""A builder's process: `python -m registrations.match_index.builds STREAM_ID` builds one match
index and says how it ended in a line of JSON on its standard output (job.py). Plain module.
"""

import signal
import sys
from pathlib import Path

from eventhub.base import limits, logs
from eventhub.base.clock import SystemClock
from eventhub.base.env import Env, read_env
from eventhub.base.errors import EventHubError
from registrations.match_index.builds.run import INTERNAL, Order, build
from registrations.match_index.builds.task import BUILT, BUSY, Report
from registrations.match_index.builds.turn import step_back, turn


def main() -> None:
    step_back()
    signal.alarm(limits.INDEX_BUILD_S_MAX)  # ends the process, also when nobody looks after it
    env = read_env()
    logs.configure(env.log_format, env.log_level)
    report = _built(env, int(sys.argv[1]))
    sys.stdout.write(report.line() + "\n")


def _built(env: Env, stream_id: int) -> Report:
    data, clock = Path(env.data), SystemClock()
    log = logs.get_logger(__name__)
    try:
        with turn(data, wait=False) as ours:
            if not ours:
                return Report(BUSY)
            began_s = clock.monotonic_s()
            manifest = build(Order(env.database_direct_url, data, stream_id))
    except EventHubError as error:
        log.warning("index_not_built", stream=stream_id, reason=error.code, detail=error.message)
        return Report(error.code)
    except Exception:
        log.exception("index_not_built", stream=stream_id)
        return Report(INTERNAL)
    seconds = clock.monotonic_s() - began_s
    log.info("index_built", stream=stream_id, epoch=manifest.epoch, registrations=manifest.ids)
    return Report(BUILT, seconds, manifest.ids)


if __name__ == "__main__":
    main()
