"""The columns of the hub's match indexes for versions of registrations (docs/match-index.md). Plain
module.
"""

COLUMNS = ("client", "endpoint", "group", "registration", "report", "since", "until")
NEVER_ENDS = (1 << 63) - 1  # in `until`


def report_bits(report: str | None, variable: str | None) -> int:
    """Return the column `report`: 1 with a report, plus 2 if the filter binds a variable."""
    return (report is not None) + 2 * (variable is not None)
