"""The propositional language: the properties that an event has, with any values: `(and A B)`,
`(or A B)`, and `(A B)` for both (OIF-17). Plain module.

Properties are top-level attributes, so a name has no dot.
"""

from registrations.filters.ast import And, Exists, Node, Or, Path
from registrations.filters.predicate import check_plain
from registrations.filters.sexpr import Item, Literal, Word, read, syntax_error

_COMPARING = frozenset(("=", "!=", "<", "<=", ">", ">=", "not", "in", "exists"))


def parse_propositional(text: str) -> Node:
    """Parse a text into a tree. Raises FilterSyntax with its position, FilterTooLarge."""
    return _node(read(text))


def _node(item: Item) -> Node:
    if isinstance(item, Literal):
        raise syntax_error("The propositional language has names only, no values.", item.position)
    if isinstance(item, Word):
        return _property(item)
    if not item.items:
        raise syntax_error("The parentheses are empty.", item.position)
    head = item.items[0]
    how = head.text if isinstance(head, Word) and head.plain else ""
    if how not in ("and", "or"):
        return And(tuple(_node(one) for one in item.items), item.position)
    if len(item.items) == 1:
        raise syntax_error(f"`{how}` takes at least one name.", head.position)
    items = tuple(_node(one) for one in item.items[1:])
    return Or(items, item.position) if how == "or" else And(items, item.position)


def _property(word: Word) -> Node:
    if word.plain and word.text in _COMPARING:
        message = f"`{word.text}` is not a property; use the predicate language to compare values."
        raise syntax_error(message, word.position)
    if "." in word.text or (word.plain and word.text[0] in "@$"):
        message = (
            f"`{word.text}` is not a top-level property; use the predicate language for paths."
        )
        raise syntax_error(message, word.position)
    if word.plain:
        check_plain(word)
    return Exists(Path(word.text, position=word.position), word.position)
