"""The runner process: `python -m sparkjobs.runs RUN_ID` performs a waiting run, unless another run
of the job is running. The outcome is in the run's row. SQL module.
"""

import signal
import sys
from typing import Any

from eventhub.base import logs
from eventhub.base.clock import SystemClock
from eventhub.base.env import read_env
from eventhub.postgresql.connections import blocking
from registrations.match_index.builds.builder_lock import lower_priority
from sparkjobs.runs import statements
from sparkjobs.runs.cancellation import TERMINATED, StopSignal
from sparkjobs.runs.execute import RunnerSettings, RunObserver, perform


def main() -> None:
    """Perform the run that the command line names."""
    lower_priority()
    env = read_env()
    logs.configure(env.log_format, env.log_level)
    log = logs.get_logger(__name__)
    stop, settings, run_id = StopSignal(), RunnerSettings.of(env), int(sys.argv[1])

    def end(*_: Any) -> None:
        stop.request(TERMINATED)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    with blocking(settings.database_url, name="job") as connection:
        run = statements.find(connection, run_id) if statements.start(connection, run_id) else None
    if run is None:
        return
    log.info("job_started", job=run.job, run=run.id)
    ended = perform(settings, run, RunObserver(stop, lambda progress: None, SystemClock()))
    log.info("job_ended", job=run.job, run=run.id, state=ended.state, verdict=ended.verdict)


if __name__ == "__main__":
    main()
