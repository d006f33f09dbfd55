"""What a registration asks for, as it was written, in whichever language: read from bodies, stored,
changed and compiled. Plain module.

The pairs language stands in fields of its own (`domain`, `type`, `application`, `attributes`); any
other is named by `language`, and `filter` is its text or its JSON (OIF-04, OIF-16).
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, NamedTuple, TypedDict
from uuid import UUID

import orjson
from msgspec import Meta

from eventhub.base.errors import EventHubError, InvalidField, MissingField
from registrations.digest import digest_of, written_form
from registrations.filters.errors import UnknownLanguage
from registrations.filters.languages import Parsed, parse
from registrations.filters.normal import Form, always, normal, normal_of_pairs
from registrations.filters.pairs import FIELDS, parse_pairs
from registrations.matching.budget import FINDING, budget_of
from registrations.matching.cost import Cost, cost_of
from registrations.matching.spec import Specs, spec_of, specs_of

PAIRS = "pairs"
Fields = dict[str, Any]


class FilterJson(TypedDict, total=False):
    """A filter in a body: of the pairs language in fields of its own, of any other in `filter`."""

    domain: str
    type: str
    application: str
    attributes: dict[str, Any]
    language: str
    filter: Annotated[Any, Meta(description="A text, or an object where the language is of JSON.")]


FILTER_FIELDS = (*FIELDS, "language", "filter")


class Filter(NamedTuple):
    """A language, and what was written in it: a text or JSON; for pairs the fields given."""

    language: str
    source: Any
    known: "Read | None" = None  # what was read, where that was needed to check the filter
    written: bytes | None = None  # its form, where a digest will be asked for

    def stored(self) -> tuple[str, str]:
        """The language and the source as JSON."""
        return self.language, orjson.dumps(self.source).decode()

    def specs(self) -> Specs:
        """The compiled form. Raises what the language raises."""
        if self.language == PAIRS:
            return (spec_of(parse_pairs(self.source)),)  # pairs are one conjunction as they stand
        return specs_of(parse(self.language, self.source).node)

    def form(self) -> Form:
        """The normal form: equal forms match the same events. Raises what the language raises."""
        return self.read().form

    def read(self) -> "Read":
        """The tree and its normal form. Raises what the language raises."""
        if self.known is not None:
            return self.known
        parsed = parse(self.language, self.source)
        form = normal_of_pairs if self.language == PAIRS else normal
        return Read(parsed, form(parsed.node))

    def prepared(self) -> "Filter":
        """The same, with what of its digest can be known before the streams are. Several
        alternatives may be written much longer than the filter, and are not kept.
        """
        form = self.form()
        return self._replace(written=written_form(form)) if len(form) == 1 else self

    def digest(self, client_id: int, stream_ids: Iterable[int]) -> UUID:
        """Of a registration that asks for it (digest.py). Raises what the language raises."""
        written = written_form(self.form()) if self.written is None else self.written
        return digest_of(client_id, stream_ids, written)

    def budgets(self, strategies: Sequence[str]) -> tuple[int, ...]:
        """What each strategy tries of it for every event (match/budget.py). Raises what the
        language raises.
        """
        if self.language == PAIRS and set(strategies) <= FINDING:
            return (0,) * len(strategies)
        form = self.form()
        each = {strategy: budget_of(form, strategy) for strategy in set(strategies)}
        return tuple(map(each.__getitem__, strategies))

    def reading(self) -> "Reading":
        """What the hub understood."""
        parsed, form = self.read()
        return Reading(parsed.predicate, warnings_of(form), cost_of(form))


class Read(NamedTuple):
    """A filter as its language is read."""

    parsed: Parsed
    form: Form


class Reading(NamedTuple):
    """A filter in predicate form, whatever its language, codes of probable mistakes, and what it
    costs a matcher.
    """

    predicate: str
    warnings: list[str]
    cost: Cost


class FilterChange(NamedTuple):
    """Another filter, or fields of pairs that replace those of before; null takes one away."""

    whole: Filter | None
    pairs: Fields


def warnings_of(form: Form) -> list[str]:
    """Codes of probable mistakes."""
    if not form:
        return ["never_matches"]
    return ["always_matches"] if always(form) else []


def stored_filter(language: str, source_json: str) -> Filter:
    return Filter(language, orjson.loads(source_json))


def parse_filter(fields: Fields) -> Filter:
    """The filter in the fields of a registration; of pairs if no language is named.

    Raises with the field what the language raises, UnknownLanguage, InvalidField, MissingField.
    """
    given = {name: fields[name] for name in FIELDS if fields.get(name) is not None}
    named = fields.get("language")
    language = PAIRS if named is None else named
    if not isinstance(language, str):
        raise InvalidField("A language is named by a text.", field="language")
    source = fields.get("filter")
    if language == PAIRS:
        if source is not None and named is not None:
            message = "Pairs have no `filter`: put `attributes`, `domain` or `type` in its place."
            raise InvalidField(message, field="filter")
        if source is not None:
            message = "The fields of a registration are its pairs; name the `language` of this one."
            raise InvalidField(message, field="language")
        return _checked(Filter(PAIRS, given))
    if given:
        message = "It is of the pairs language; put it into the `filter`."
        raise InvalidField(message, field=next(iter(given)))
    if source is None:
        raise MissingField(field="filter")
    return _checked(Filter(language, source))


def parse_filter_change(fields: Fields) -> FilterChange:
    """What the body of a change says of the filter."""
    given = {name: fields[name] for name in FIELDS if name in fields}
    if "language" in fields or "filter" in fields:
        return FilterChange(parse_filter(fields), {})
    parse_pairs(given)
    return FilterChange(None, given)


def changed_filter(filter: Filter, change: FilterChange) -> Filter:
    """The filter after a change. Raises InvalidField for fields of pairs in another language."""
    if change.whole is not None:
        return change.whole
    if not change.pairs:
        return filter
    if filter.language != PAIRS:
        message = f"The filter is written in {filter.language}; give `language` and all of it."
        raise InvalidField(message, field=next(iter(change.pairs)))
    merged = {**filter.source, **change.pairs}
    given = {name: value for name, value in merged.items() if value is not None}
    return _checked(Filter(PAIRS, given))


def same_filter(one: Filter, other: Filter) -> bool:
    """True if both were written alike, apart from the order of names."""
    if one.language != other.language:
        return False
    first, second = (orjson.dumps(it.source, option=orjson.OPT_SORT_KEYS) for it in (one, other))
    return first == second


def _checked(filter: Filter) -> Filter:
    """The same with what was read of it. Raises with the field what its language raises."""
    try:
        return filter._replace(known=filter.read())
    except EventHubError as error:
        if filter.language == PAIRS:
            error.field = error.field or "attributes"
        elif isinstance(error, UnknownLanguage):
            error.field = "language"
        else:
            error.field = f"filter.{error.field}" if error.field else "filter"
        raise
