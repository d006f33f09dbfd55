"""The timetable: what Celery's beat starts, and when. All times are UTC.

What one run did not do, the next one does; so a run that nobody took in time is forgotten.
"""

from datetime import timedelta

HOUR_S = 3600
ARCHIVE_INTERVAL_S = 30
INDEXES_INTERVAL_S = 5  # somebody may have asked in the console, and is looking at it

TIMETABLE = {
    # partitions of old deliveries and attempts are dropped
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
}
