"""What is recorded of a response that repeats secrets."""

import pytest

from delivery.callbacks.recorded import recorded

SECRET = "Bearer abcabcabcdef"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("nothing", "nothing"),
        (f"got {SECRET}, thanks", "got (hidden), thanks"),
        (f"{SECRET}{SECRET}", "(hidden)(hidden)"),
        ("got abcabcabcdef", "got (hidden)"),
        # cut at the end
        ("got Bearer abcabcabc", "got (hidden)"),
        ("got Bearer a", "got (hidden)"),
        ("got Bearer ", "got Bearer "),
        ("got abcabcabcde", "got (hidden)"),
        ("Bearer abcabcabcde", "(hidden)"),
        ("Bearer abc and more", "Bearer abc and more"),
        # too short to be hidden
        ("a pw in a text", "a pw in a text"),
        ("a\0b", "a�b"),
        ("", ""),
    ],
)
def test_secrets_are_hidden_also_where_they_are_cut(text: str, shown: str) -> None:
    assert recorded(text, (SECRET, "abcabcabcdef", "pw")) == shown
