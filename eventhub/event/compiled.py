"""The compiled transcoder, encoder and decoder of events, transcoder.cpp, encoder.cpp and
decoder.cpp; None if they were not built, or for another Python. Plain module.
"""

__all__ = ["decoder", "encoder", "transcoder"]

try:
    from eventhub.event import transcoder
except ImportError:
    transcoder = None  # type: ignore[assignment]

try:
    from eventhub.event import encoder
except ImportError:
    encoder = None  # type: ignore[assignment]

try:
    from eventhub.event import decoder
except ImportError:
    decoder = None  # type: ignore[assignment]
