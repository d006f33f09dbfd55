"""The columns of the hub's match indexes for versions of registrations (docs/match-index.md).
Plain module.
"""

COLUMNS = ("client", "endpoint", "group", "registration", "report", "since", "until")
NEVER_ENDS = (1 << 63) - 1  # in `until`
