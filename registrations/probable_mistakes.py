"""Warnings about filters that depend on what a zone has: a filter reads the body on a stream
without the policy `filterable_data`, or an attribute that its type does not have. Django module.
"""

from collections.abc import Iterable, Iterator
from types import SimpleNamespace

from eventhub.api.announcements import raw_connection
from eventhub.event.filterable import is_in_data
from eventhub.types.definitions import schemas_of
from eventhub.types.described_fields import DescribedFields
from eventhub.types.selectors import definition_of, lineage, subtypes
from registrations import statements
from registrations.filter_source import FilterSource, Warned
from registrations.filters.ast import OfType
from registrations.filters.paths import all_paths
from registrations.matching.spec import Spec

_FILTERS_MAX = 10  # of one answer whose types are looked up: each takes some queries
_TYPES_MAX = 10  # of one filter


def with_data_warnings(found: list[SimpleNamespace]) -> list[SimpleNamespace]:
    """Add a warning to represented registrations that read `data` on a stream without it."""
    reading = [one for one in found if one.read.read().reads_data]
    ids = {id for one in reading for id in one.stream_ids}
    without = statements.streams_without_data(raw_connection(), ids) if ids else frozenset()
    for one in reading:
        if not without.isdisjoint(one.stream_ids):
            one.warnings = [*one.warnings, "data_not_filterable"]
    return found


def with_warnings(zone_id: int, found: list[SimpleNamespace]) -> list[SimpleNamespace]:
    """Add warnings to represented registrations that were created or changed."""
    for one in found[:_FILTERS_MAX]:
        one.warnings = [*one.warnings, *type_warnings(zone_id, one.read)]
    return with_data_warnings(found)


def stream_warnings(filter: FilterSource, stream_ids: Iterable[int]) -> list[Warned]:
    """Return the warnings of a filter on streams."""
    if not filter.read().reads_data:
        return []
    return ["data_not_filterable"] * bool(
        statements.streams_without_data(raw_connection(), stream_ids)
    )


def type_warnings(zone_id: int, filter: FilterSource) -> list[Warned]:
    """Return the warnings of a filter whose alternatives each name a declared type: an alternative
    tests an attribute that neither the type nor a supertype or subtype describes.
    """
    for spec in filter.specs()[:_TYPES_MAX]:
        named = {name.partition(".")[0] for name in _attributes(spec) if not is_in_data(name)}
        described = _described(zone_id, spec) if named else None
        if described is not None and any(not described.include((), one) for one in named):
            return ["unknown_attribute"]
    return []


def _attributes(spec: Spec) -> Iterator[str]:
    yield from (name for name, _ in spec.pairs)
    for test in spec.tests:
        yield from (path.name for path in all_paths(test) if path.space == "attributes")


def _described(zone_id: int, spec: Spec) -> DescribedFields | None:
    """Return the attributes of the type that a spec requires; None if it requires no declared type,
    or several.
    """
    domain, type = spec.domain, spec.type
    for test in spec.tests:
        if isinstance(test, OfType) and not test.below:
            domain, type = test.domain, test.type
    if domain is None or type is None:
        return None
    versions = lineage(zone_id=zone_id, domain=domain, type=type)
    if not versions:
        return None
    every = [*versions, *subtypes(versions[0])]
    return DescribedFields(schemas_of(definition_of(one)).attributes for one in every)
