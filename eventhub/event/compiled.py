"""The compiled transcoder of events, transcoder.cpp; None if it was not built, or for another
Python. Plain module.
"""

__all__ = ["transcoder"]

try:
    from eventhub.event import transcoder
except ImportError:
    transcoder = None  # type: ignore[assignment]
