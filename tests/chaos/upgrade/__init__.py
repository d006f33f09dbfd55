"""An upgrade to the next release and back under load."""
