"""The whole circle: events are emitted, sealed, archived and matched while Spark builds the index,
and the audit finds nothing. Then faults are planted, and the audit finds exactly these.
"""
