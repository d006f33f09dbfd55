"""The form in which tests that ignore case compare texts. Plain module."""

SIGMA, _FINAL_SIGMA = "σ", "ς"


def in_one_case(text: str) -> str:
    """Return a text in lower case, each letter by itself: `str.lower` makes of Σ a final
    sigma at the end of a word, so that ΟΔΟΣΑ would not begin with ΟΔΟΣ.
    """
    return text.lower().replace(_FINAL_SIGMA, SIGMA)
