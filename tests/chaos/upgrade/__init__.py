"""An upgrade to the next release and back, while everything goes on."""
