"""The timetable: what Celery's beat starts, and when. All times are UTC. Plain module.

What one run did not do, the next one does; so a run that nobody took in time is forgotten.
"""

from datetime import timedelta

from celery.schedules import crontab

from eventhub.base.task_requests import ARCHIVE, BUILD_INDEXES, RUN_JOBS
from sparkjobs.runs.jobs import JOBS

HOUR_S = 3600
ARCHIVE_INTERVAL_S = 60
# what somebody asks for begins at once (soon.py); these find what is due, and what was not heard
INDEXES_INTERVAL_S = 60
JOBS_INTERVAL_S = 30
# entries that rest, up to TIMETABLE_REST_S, while nothing is appended to the log: then no segment
# was sealed, no registration changed, and no job was asked for (beat.py)
RESTING = frozenset({"archive", "build-indexes", "run-jobs"})

TIMETABLE = {
    # partitions of old deliveries, attempts and listeners are archived and dropped
    "retire": {
        "task": "delivery.retire",
        "schedule": timedelta(hours=1),
        "options": {"expires": HOUR_S},
    },
    # rows of ordered lanes that nobody has used for long are deleted
    "forget-lanes": {
        "task": "delivery.forget_lanes",
        "schedule": timedelta(hours=1),
        "options": {"expires": HOUR_S},
    },
    # ended versions of registrations that nothing can ask for any more are deleted
    "purge-versions": {
        "task": "registrations.purge_versions",
        "schedule": timedelta(hours=1),
        "options": {"expires": HOUR_S},
    },
    # sealed segments of streams with the policy `archive` go to the archive
    "archive": {
        "task": ARCHIVE,
        "schedule": timedelta(seconds=ARCHIVE_INTERVAL_S),
        "options": {"expires": ARCHIVE_INTERVAL_S},
    },
    # match indexes that somebody asked for, and those that too much has changed since
    "build-indexes": {
        "task": BUILD_INDEXES,
        "schedule": timedelta(seconds=INDEXES_INTERVAL_S),
        "options": {"expires": INDEXES_INTERVAL_S},
    },
    # runs of Spark jobs that somebody asked for, or the entries below
    "run-jobs": {
        "task": RUN_JOBS,
        "schedule": timedelta(seconds=JOBS_INTERVAL_S),
        "options": {"expires": JOBS_INTERVAL_S},
    },
    # the audit and the plan of retention, each once a day
    **{
        f"ask-{kind.name}": {
            "task": "jobs.ask",
            "args": (kind.name,),
            "schedule": crontab(hour=kind.timetable.hour, minute=kind.timetable.minute),
            "options": {"expires": HOUR_S},
        }
        for kind in JOBS.values()
        if kind.timetable
    },
}
