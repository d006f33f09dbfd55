"""The propositional language: which properties an event has, whatever their values: `(and A B)`,
`(or A B)`, and `(A B)` for both (OIF-17). Plain module.

Only top-level attributes count, so a name has no dot.
"""

from registrations.filters.ast import And, Exists, Node, Or, Path
from registrations.filters.predicate import check_plain
from registrations.filters.sexpr import Item, Literal, Word, read, wrong

_COMPARING = frozenset(("=", "!=", "<", "<=", ">", ">=", "not", "in", "exists"))


def parse_propositional(text: str) -> Node:
    """The tree of a text. Raises FilterSyntax with its place, FilterTooLarge."""
    return _node(read(text))


def _node(item: Item) -> Node:
    if isinstance(item, Literal):
        raise wrong("Here is a value; the propositional language knows names only.", item.place)
    if isinstance(item, Word):
        return _property(item)
    if not item.items:
        raise wrong("There is nothing between these parentheses.", item.place)
    head = item.items[0]
    how = head.text if isinstance(head, Word) and head.plain else ""
    if how not in ("and", "or"):
        return And(tuple(_node(one) for one in item.items), item.place)
    if len(item.items) == 1:
        raise wrong(f"`{how}` is of one name at least.", head.place)
    items = tuple(_node(one) for one in item.items[1:])
    return Or(items, item.place) if how == "or" else And(items, item.place)


def _property(word: Word) -> Node:
    if word.plain and word.text in _COMPARING:
        message = f"`{word.text}` is no property; the predicate language compares values."
        raise wrong(message, word.place)
    if "." in word.text or (word.plain and word.text[0] in "@$"):
        message = (
            f"`{word.text}` is no property of the top; the predicate language reaches further."
        )
        raise wrong(message, word.place)
    if word.plain:
        check_plain(word)
    return Exists(Path(word.text, place=word.place), word.place)
