"""Report pages: user input is escaped, nothing is loaded, and equal figures give equal pages."""

import re
from html.parser import HTMLParser

from sparkjobs.report.page import ReportSection, figures, page, table, verbatim
from sparkjobs.report.plot import PlotLabels, PlotSeries, bars, lines, time_bars, time_lines

NASTY = """<script>alert("1")</script> & $x_1^{2 'é'"""
STARTED_US = 1_760_000_400_000_000
HOUR_US = 3_600_000_000


class ParsedPage(HTMLParser):
    """The tags and texts of a page, as a browser parses them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts = ""
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        links = ("src", "href", "xlink:href", "action", "data")
        self.links += [value or "" for name, value in attrs if name in links]

    def handle_data(self, data: str) -> None:
        self.texts += data


def everything() -> str:
    series = [PlotSeries(NASTY[:30], [1, 2e6, 3]), PlotSeries("kept", [0, 5, 1e9])]
    times = [STARTED_US + at * HOUR_US for at in range(3)]
    words = PlotLabels(NASTY, NASTY, NASTY)
    parts = [
        NASTY,
        table([NASTY], [[NASTY], [1_234_567], [None], [True], [0.5]]),
        figures({NASTY: NASTY}),
        verbatim(f"{NASTY}\n{NASTY}"),
        bars([NASTY, "b", "c"], series, words),
        lines([1, 2, 3], series, words),
        time_bars(times, HOUR_US, series, words),
        time_lines(times, series, words),
    ]
    return page(NASTY, NASTY, [ReportSection(NASTY, parts)])


def test_user_input_is_escaped_everywhere() -> None:
    parsed = ParsedPage(everything())
    assert "script" not in parsed.tags
    assert parsed.texts.count(NASTY) == 11 + 4 * 3  # the title and both axes of each plot
    assert all(text in parsed.texts for text in ("1,234,567", "–", "yes", "0.5"))


def test_a_page_loads_nothing_and_follows_the_readers_colours() -> None:
    text = everything()
    assert all(link.startswith("#") for link in ParsedPage(text).links)
    assert not re.search(r"@import|url\((?!#)", text)
    assert "color-scheme: light dark" in text
    assert "#010203" not in text
    assert not re.search(r"(fill|stroke): *#(000000|ffffff)", text)


def test_equal_figures_give_equal_pages() -> None:
    assert everything() == everything()


def test_plots_with_no_or_one_position_are_drawn() -> None:
    for count in (0, 1):
        series = [PlotSeries("one", [1.0] * count)]
        words = PlotLabels("few", "events")
        assert "<svg" in time_bars([STARTED_US] * count, HOUR_US, series, words)
        assert "<svg" in time_lines([STARTED_US] * count, series, words)
        assert "<svg" in bars(["a"] * count, series, words)
