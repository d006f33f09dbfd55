"""The compiled transcoder and encoder of events, transcoder.cpp and encoder.cpp; None if they were
not built, or for another Python. Plain module.
"""

__all__ = ["encoder", "transcoder"]

try:
    from eventhub.event import transcoder
except ImportError:
    transcoder = None  # type: ignore[assignment]

try:
    from eventhub.event import encoder
except ImportError:
    encoder = None  # type: ignore[assignment]
