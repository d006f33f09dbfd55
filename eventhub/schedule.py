"""The timetable: what Celery's beat starts, and when. All times are UTC.

What one run did not do, the next one does; so a run that nobody took in time is forgotten.
"""

from datetime import timedelta

from celery.schedules import crontab

from eventhub.jobs.kinds import KINDS

HOUR_S = 3600
ARCHIVE_INTERVAL_S = 30
INDEXES_INTERVAL_S = 5  # somebody may have asked in the console, and is looking at it
JOBS_INTERVAL_S = 5  # likewise

TIMETABLE = {
    # partitions of old deliveries, attempts and listens are archived and dropped
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
    # sealed segments of streams with the policy `archive` go to the archive
    "archive": {
        "task": "eventlog.archive",
        "schedule": timedelta(seconds=ARCHIVE_INTERVAL_S),
        "options": {"expires": ARCHIVE_INTERVAL_S},
    },
    # match indexes that somebody asked for, and those that too much has changed since
    "build-indexes": {
        "task": "registrations.build_indexes",
        "schedule": timedelta(seconds=INDEXES_INTERVAL_S),
        "options": {"expires": INDEXES_INTERVAL_S},
    },
    # runs of Spark jobs that somebody asked for, or the entries below
    "run-jobs": {
        "task": "jobs.run",
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
        for kind in KINDS.values()
        if kind.timetable
    },
}
