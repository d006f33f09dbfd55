-- The first rows of the log: its partitions, and the stream `system` with id 1, so that it comes first in every lock order.
-- Other ids begin at 100.
ALTER TABLE streams ALTER COLUMN id RESTART WITH 100;
CREATE TABLE idempotency_digests_0 PARTITION OF idempotency_digests FOR VALUES IN (0);
CREATE TABLE idempotency_digests_1 PARTITION OF idempotency_digests FOR VALUES IN (1);
CREATE TABLE idempotency_digests_2 PARTITION OF idempotency_digests FOR VALUES IN (2);
CREATE TABLE idempotency_digests_3 PARTITION OF idempotency_digests FOR VALUES IN (3);
CREATE TABLE events_p1 (LIKE events INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE INCLUDING INDEXES);
ALTER TABLE events ATTACH PARTITION events_p1 FOR VALUES IN (1);
INSERT INTO archiver DEFAULT VALUES;
INSERT INTO event_partitions (id) VALUES (1);
INSERT INTO log_state (current_partition) VALUES (1);
WITH opened AS (
    INSERT INTO streams (id, zone_id, name, segment_events_max, segment_bytes_max)
    VALUES (1, NULL, 'system', 100000, 67108864) RETURNING id
), segment AS (
    INSERT INTO segments (uuid, stream_id, partition_id, first)
    SELECT gen_random_uuid(), id, 1, 1 FROM opened RETURNING id, uuid, stream_id
)
INSERT INTO heads (stream_id, segment_id, segment, partition_id, first, sequence, bytes)
SELECT stream_id, id, uuid, 1, 1, 0, 0 FROM segment;
