"""All calls, in the order in which they are made."""

from tests.acceptance.recorded import (
    access,
    applications,
    connectors,
    delivered,
    endpoints,
    every,
    hot,
    interest,
    patterns,
    recovery,
    sessions,
    sources,
    streams,
    timers,
    wrong,
)
from tests.acceptance.recorded.call import sql

CALLS = [
    *access.CALLS,
    *streams.CALLS,
    *endpoints.CALLS,
    *sessions.CALLS,
    *interest.CALLS,
    *delivered.CALLS,
    *sources.CALLS,
    *connectors.CALLS,
    *every.calls(),
    *every.OTHERS,
    sql("DELETE FROM job_runs WHERE state = 'waiting'"),
    *wrong.calls(),
    *hot.CALLS,
    *recovery.CALLS,
    *applications.CALLS,
    *timers.CALLS,
    *patterns.CALLS,
    *patterns.ENDED,
    *interest.ENDED,
    *sources.ENDED,
    *connectors.ENDED,
]
