"""The columns of match indexes for versions (docs/match-index.md). Plain module."""

COLUMNS = ("client", "endpoint", "group", "registration", "report", "since", "until")
NEVER_ENDS = (1 << 63) - 1  # in `until`
