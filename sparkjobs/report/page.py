"""A report as a self-contained HTML page: it loads nothing, and text that is not `Html` is escaped.
Plain module.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import NamedTuple

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2 { line-height: 1.2; }
h2 { margin-top: 2.5rem; }
p { max-width: 48rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0;
  border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
td { overflow-wrap: anywhere; }
.number { text-align: right; overflow-wrap: normal; white-space: nowrap; }
dl { display: grid; grid-template-columns: max-content auto; gap: .25rem 1.5rem; }
dt { opacity: .75; }
dd { margin: 0; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; }
figure { margin: 1.5rem 0; }
svg { max-width: 100%; height: auto; }
svg text { font-family: inherit !important; }
"""
Value = str | int | float | None


class Html(str):
    """Markup built by this package, which needs no escaping."""

    __slots__ = ()


class ReportSection(NamedTuple):
    """A section of a page; plain text among its parts becomes a paragraph."""

    heading: str
    parts: Sequence[str]


def page(title: str, about: str, sections: Iterable[ReportSection]) -> str:
    """Return the whole document. `about`: a sentence below the title."""
    body = "\n".join(_section(each) for each in sections)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width">\n<title>{escape(title)}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n"
        f"<p>{escape(about)}</p>\n{body}\n</body>\n</html>\n"
    )


def table(heads: Sequence[str], rows: Iterable[Sequence[Value]]) -> Html:
    """Return a table; numbers get separators and are right-aligned, None is a dash."""
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    lines = "\n".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    return Html(
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{lines}\n</tbody></table></div>"
    )


def figures(values: Mapping[str, Value]) -> Html:
    """Return a list of names and values."""
    lines = (f"<dt>{escape(name)}</dt><dd>{_format(each)}</dd>" for name, each in values.items())
    return Html("<dl>\n" + "\n".join(lines) + "\n</dl>")


def verbatim(text: str) -> Html:
    """Return text with its line breaks, such as a filter."""
    return Html(f"<pre>{escape(text)}</pre>")


def time_text(time_us: int) -> str:
    """Format a time in UTC to the second: 2026-11-22 20:15:00."""
    return datetime.fromtimestamp(time_us // 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _section(section: ReportSection) -> str:
    parts = (each if isinstance(each, Html) else f"<p>{escape(each)}</p>" for each in section.parts)
    return f"<section><h2>{escape(section.heading)}</h2>\n" + "\n".join(parts) + "\n</section>"


def _cell(value: Value) -> str:
    kind = ' class="number"' if isinstance(value, int | float) else ""
    return f"<td{kind}>{_format(value)}</td>"


def _format(value: Value) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.4g}" if isinstance(value, float) else escape(value)
