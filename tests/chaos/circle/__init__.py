"""The whole circle: events are emitted, sealed, archived and matched, the index is built by Spark
while they flow, and the audit finds nothing; then faults are planted, and it finds just these."""
