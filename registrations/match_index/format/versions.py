"""What the hub's match indexes have of each version of a registration beside its filter, as columns
(docs/match-index.md). Plain module.
"""

COLUMNS = ("client", "endpoint", "group", "registration", "report", "since", "until")
NEVER_ENDS = (1 << 63) - 1  # in `until`
