"""Names of event types in MCP."""

import pytest

from delivery.mcp.errors import RpcError
from delivery.mcp.event_types import find_type
from eventhub.base import limits
from eventhub.types.definitions import Definition
from eventhub.types.registry import ZoneTypes


class CountedTypes(ZoneTypes):
    """The types of a zone, and how often one was looked up."""

    count = 0

    def newest(self, domain: str, type: str) -> Definition | None:
        self.count += 1
        return super().newest(domain, type)


@pytest.mark.parametrize("separators", [1, limits.TEXT_CHARS_MAX, 10_000])
def test_a_long_name_is_looked_up_a_few_times(separators: int) -> None:
    """Each `::` may end the domain: 100,000 of them took half a minute of the whole process."""
    types = CountedTypes([])
    with pytest.raises(RpcError) as error:
        find_type(types, "::" * separators)
    assert error.value.code == -32023
    assert types.count <= 2 * limits.TEXT_CHARS_MAX
