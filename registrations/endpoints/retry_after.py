"""Reads the header Retry-After of a receiver's answer. Plain module."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from eventhub.base import limits

_DIGITS = re.compile(r"[0-9]+")


def read_retry_after(text: str, now_us: int) -> float | None:
    """Return the seconds of a Retry-After header, given as a number (up to the longest pause) or as
    an HTTP date; None if it is neither.
    """
    text = text.strip()
    if _DIGITS.fullmatch(text):
        return min(limits.CALLBACK_RETRY_AFTER_S_MAX, float(text))  # inf for very many digits
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    try:
        return max(0.0, (until - datetime.fromtimestamp(now_us / 1e6, UTC)).total_seconds())
    except OverflowError:
        return None
