"""The timetable: the tasks that Celery's beat starts, and their times in UTC. Plain module.

A run continues the work of the last one; so a message that no worker took in time expires.
"""

from datetime import timedelta

from celery.schedules import crontab

from eventhub.base.task_requests import ARCHIVE, BUILD_INDEXES, DELETE_DUE, RUN_JOBS
from sparkjobs.runs.jobs import JOBS

HOUR_S = 3600
ARCHIVE_INTERVAL_S = 60
DELETION_INTERVAL_S = 60
# requested work starts at once (task_requests.py); these find due work, and lost requests
INDEXES_INTERVAL_S = 60
JOBS_INTERVAL_S = 30
# entries that rest, up to TIMETABLE_REST_S, while nothing is appended to the log: then no segment
# was sealed, no registration changed, and no job was requested (beat.py)
RESTING = frozenset({"archive", "build-indexes", "run-jobs"})

TIMETABLE = {
    # partitions of old deliveries, attempts and listeners are archived and dropped
    "retire": {
        "task": "delivery.retire",
        "schedule": timedelta(hours=1),
        "options": {"expires": HOUR_S},
    },
    # rows of ordered lanes that have been unused for long are deleted
    "forget-lanes": {
        "task": "delivery.forget_lanes",
        "schedule": timedelta(hours=1),
        "options": {"expires": HOUR_S},
    },
    # ended versions of registrations that nothing can need any more are deleted
    "purge-versions": {
        "task": "registrations.purge_versions",
        "schedule": timedelta(hours=1),
        "options": {"expires": HOUR_S},
    },
    # streams whose grace period has ended are deleted, and their data removed
    "delete-due": {
        "task": DELETE_DUE,
        "schedule": timedelta(seconds=DELETION_INTERVAL_S),
        "options": {"expires": DELETION_INTERVAL_S},
    },
    # sealed segments of streams with the policy `archive` go to the archive
    "archive": {
        "task": ARCHIVE,
        "schedule": timedelta(seconds=ARCHIVE_INTERVAL_S),
        "options": {"expires": ARCHIVE_INTERVAL_S},
    },
    # match indexes that are requested, or outdated by changes, are built
    "build-indexes": {
        "task": BUILD_INDEXES,
        "schedule": timedelta(seconds=INDEXES_INTERVAL_S),
        "options": {"expires": INDEXES_INTERVAL_S},
    },
    # requested runs of Spark jobs, also by the entries below, are executed
    "run-jobs": {
        "task": RUN_JOBS,
        "schedule": timedelta(seconds=JOBS_INTERVAL_S),
        "options": {"expires": JOBS_INTERVAL_S},
    },
    # the audit and the retention plan are requested, each once a day
    **{
        f"ask-{kind.name}": {
            "task": "jobs.ask",
            "args": (kind.name,),
            "schedule": crontab(hour=kind.schedule.hour, minute=kind.schedule.minute),
            "options": {"expires": HOUR_S},
        }
        for kind in JOBS.values()
        if kind.schedule
    },
}
