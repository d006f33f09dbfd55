"""The filter of a registration as its client wrote it, in any language: parsed from request bodies,
stored, changed and compiled. Plain module.

The pairs language has its own fields (`domain`, `type`, `application`, `attributes`); `language`
names any other, and `filter` is its text or JSON (OIF-04, OIF-16).
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Annotated, Any, Literal, NamedTuple, TypedDict
from uuid import UUID

import orjson
from msgspec import Meta

from eventhub.base.errors import EventHubError, InvalidField, MissingField
from registrations.errors import SignatureMismatch
from registrations.filters.contradictions import never
from registrations.filters.errors import UnknownLanguage
from registrations.filters.languages import ParsedFilter, parse
from registrations.filters.normal import NormalForm, always, normal, normal_of_pairs, printed_parts
from registrations.filters.pairs import FIELDS, parse_pairs
from registrations.filters.paths import reads_data
from registrations.matching.cost import PAIR_INDEXED, FilterCost, cost_of, every_event_cost
from registrations.matching.signatures import required_properties
from registrations.matching.spec import Specs, spec_of, specs_of

PAIRS = "pairs"
Warned = Literal[
    "never_matches", "always_matches", "equal_to", "data_not_filterable", "unknown_attribute"
]
_DIGEST_BYTES = 16
READY = "ready"
Fields = dict[str, Any]


class FilterJson(TypedDict, total=False):
    """A filter in a request body: pairs in their own fields, any other language in `filter`."""

    domain: str
    type: str
    application: str
    attributes: dict[str, Any]
    language: str
    filter: Annotated[Any, Meta(description="A text, or an object for a JSON language.")]


FILTER_FIELDS = (*FIELDS, "language", "filter")


class FilterSource(NamedTuple):
    """A language and a filter written in it: a text or JSON; for pairs the given fields."""

    language: str
    source: Any
    known: "NormalizedFilter | None" = None  # if it was parsed to check it
    written: bytes | None = None  # its canonical bytes, prepared for a digest

    def stored(self) -> tuple[str, str]:
        """Return the language and the source as JSON."""
        return self.language, orjson.dumps(self.source).decode()

    def specs(self) -> Specs:
        """Compile it. Raises what the language raises."""
        if self.language == PAIRS:
            return (spec_of(parse_pairs(self.source)),)  # pairs are one conjunction already
        return specs_of(parse(self.language, self.source).node)

    def variable(self) -> str | None:
        """Return the variable that a READY filter binds. Raises what the language raises."""
        if self.language != READY:
            return None
        return self.known.parsed.variable if self.known else parse(READY, self.source).variable

    def form(self) -> NormalForm:
        """Return the normal form: equal forms match the same events. Raises what the language
        raises.
        """
        return self.read().form

    def read(self) -> "NormalizedFilter":
        """Parse it into a tree and its normal form. Raises what the language raises."""
        if self.known is not None:
            return self.known
        parsed = parse(self.language, self.source)
        form = normal_of_pairs if self.language == PAIRS else normal
        return NormalizedFilter(parsed, form(parsed.node))

    def prepared(self) -> "FilterSource":
        """Return the same filter with its canonical bytes for a digest, which do not depend on the
        streams. Those of several alternatives may be much longer than the filter; these are not
        prepared.
        """
        form = self.form()
        return self._replace(written=_written_form(form)) if len(form) == 1 else self

    def digest(self, client_id: int, stream_ids: Iterable[int]) -> UUID:
        """Return the digest of a registration with this filter. Raises what the
        language raises.
        """
        written = _written_form(self.form()) if self.written is None else self.written
        return _digest_of(client_id, stream_ids, written)

    def budgets(self, strategies: Sequence[str]) -> tuple[int, ...]:
        """Return what each strategy evaluates of it for every event (matching/cost.py). Raises what
        the language raises.
        """
        if self.language == PAIRS and set(strategies) <= PAIR_INDEXED:
            return (0,) * len(strategies)
        form = self.form()
        each = {strategy: every_event_cost(form, strategy) for strategy in set(strategies)}
        return tuple(map(each.__getitem__, strategies))

    def summary(self) -> "FilterSummary":
        """Return the filter as the hub understood it. Raises what the language raises."""
        parsed, form = self.read()
        signature = sorted(required_properties(parsed.node))
        return FilterSummary(parsed.predicate, warnings_of(form), cost_of(form), signature)

    def require_signature(self, given: frozenset[str] | None) -> None:
        """Raise SignatureMismatch if a client states another signature than the filter has."""
        if given is None:
            return
        demanded = required_properties(self.read().parsed.node)
        if given != demanded:
            raise SignatureMismatch(
                field="signature", given=sorted(given), demanded=sorted(demanded)
            )


class NormalizedFilter(NamedTuple):
    """A parsed filter and its normal form."""

    parsed: ParsedFilter
    form: NormalForm

    @property
    def reads_data(self) -> bool:
        """Whether it reads `data`, the body of an event."""
        return reads_data(self.parsed.node)


class FilterSummary(NamedTuple):
    """A filter in predicate form, codes of probable mistakes in it, its cost for a matcher, and its
    signature: the properties that it demands, sorted (OIF-24).
    """

    predicate: str
    warnings: list[str]
    cost: FilterCost
    signature: list[str]


class FilterChange(NamedTuple):
    """A new filter, or fields of pairs to replace; null removes a field."""

    whole: FilterSource | None
    pairs: Fields


def warnings_of(form: NormalForm) -> list[str]:
    """Return codes of probable mistakes."""
    if never(form):
        return ["never_matches"]
    return ["always_matches"] if always(form) else []


def stored_filter(language: str, source_json: str) -> FilterSource:
    return FilterSource(language, orjson.loads(source_json))


def parse_filter(fields: Fields) -> FilterSource:
    """Parse the filter from the fields of a registration; pairs if there is no `language`.

    Raises UnknownLanguage, InvalidField, MissingField and what the language raises, with the field.
    """
    given = {name: fields[name] for name in FIELDS if fields.get(name) is not None}
    named = fields.get("language")
    language = PAIRS if named is None else named
    if not isinstance(language, str):
        raise InvalidField("A language is named by a text.", field="language")
    source = fields.get("filter")
    if language == PAIRS:
        if source is not None and named is not None:
            message = "Pairs have no `filter`; use `attributes`, `domain` or `type` instead."
            raise InvalidField(message, field="filter")
        if source is not None:
            message = "A `filter` needs a `language`."
            raise InvalidField(message, field="language")
        return _checked(FilterSource(PAIRS, given))
    if given:
        message = "The field belongs to the pairs language; move the test into the `filter`."
        raise InvalidField(message, field=next(iter(given)))
    if source is None:
        raise MissingField(field="filter")
    return _checked(FilterSource(language, source))


def parse_filter_change(fields: Fields) -> FilterChange:
    """Parse the change of the filter in the body of a request."""
    given = {name: fields[name] for name in FIELDS if name in fields}
    if "language" in fields or "filter" in fields:
        return FilterChange(parse_filter(fields), {})
    parse_pairs(given)
    return FilterChange(None, given)


def changed_filter(filter: FilterSource, change: FilterChange) -> FilterSource:
    """Apply a change. Raises InvalidField for fields of pairs if the language is another."""
    if change.whole is not None:
        return change.whole
    if not change.pairs:
        return filter
    if filter.language != PAIRS:
        message = f"The filter is in {filter.language}; send `language` and the whole `filter`."
        raise InvalidField(message, field=next(iter(change.pairs)))
    merged = {**filter.source, **change.pairs}
    given = {name: value for name, value in merged.items() if value is not None}
    return _checked(FilterSource(PAIRS, given))


def same_filter(one: FilterSource, other: FilterSource) -> bool:
    """Return whether both are written the same, apart from the order of names."""
    if one.language != other.language:
        return False
    first, second = (orjson.dumps(it.source, option=orjson.OPT_SORT_KEYS) for it in (one, other))
    return first == second


def _checked(filter: FilterSource) -> FilterSource:
    """Return the filter with its parsed form. Raises what the language raises, with the field."""
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


def _written_form(form: NormalForm) -> bytes:
    """Return canonical bytes of a normal form: equal only for equal forms."""
    found = []
    for alternative in printed_parts(form):
        found.append(b"|")
        for written, _ in alternative:
            text = written.encode()
            found.append(b"%d:%b" % (len(text), text))
    return b"".join(found)


def _digest_of(client_id: int, stream_ids: Iterable[int], written: bytes) -> UUID:
    """Return a digest of a client, its streams and the canonical bytes of its filter.

    It includes the client, so that one look-up finds the registrations of that client only.
    """
    digest = blake2b(digest_size=_DIGEST_BYTES)
    for number in (client_id, *sorted(set(stream_ids))):
        digest.update(b"%d," % number)
    digest.update(written)
    return UUID(bytes=digest.digest())
