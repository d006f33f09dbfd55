-- The deletion of a stream's forwarding and deliveries.

-- name: lead
-- One process at a time deletes; the session of a killed one ends.
SELECT pg_try_advisory_lock(hashtext('eventhub deletion'))

-- name: stop_leading
SELECT pg_advisory_unlock(hashtext('eventhub deletion'))

-- name: stop_forwarding
-- In the transaction that deletes the stream: a forwarder that has it loses its lease. `deliveries` of open fan-outs were not yet
-- written; they count as pending.
WITH forwarded AS (
    DELETE FROM forwarding WHERE stream_id = %(id)s RETURNING sequence
), fanned AS (
    DELETE FROM fanouts WHERE stream_id = %(id)s RETURNING total - done AS deliveries
), counted AS (
    UPDATE streams SET erased_pending = erased_pending + (SELECT COALESCE(sum(deliveries), 0) FROM fanned) WHERE id = %(id)s
)
SELECT sequence FROM forwarded

-- name: partitions
SELECT g.id FROM event_partitions g
  JOIN pg_class c ON c.relname = 'deliveries_p' || g.id
  JOIN pg_inherits i ON i.inhrelid = c.oid AND i.inhparent = 'deliveries'::regclass AND NOT i.inhdetachpending
 ORDER BY g.id

-- name: erase_deliveries
-- Examines the next rows of a partition in the order of their key, and removes those of the stream. No row: there are no more.
WITH page AS MATERIALIZED (
    SELECT endpoint_id, segment_id, sequence, stream_id FROM deliveries
     WHERE partition_id = %(partition_id)s AND (endpoint_id, segment_id, sequence) > (%(endpoint_id)s, %(segment_id)s, %(sequence)s)
     ORDER BY endpoint_id, segment_id, sequence
     LIMIT %(rows_max)s
), erased AS (
    DELETE FROM deliveries d USING page p
     WHERE d.partition_id = %(partition_id)s AND p.stream_id = %(id)s
       AND (d.endpoint_id, d.segment_id, d.sequence) = (p.endpoint_id, p.segment_id, p.sequence)
    RETURNING d.state
), counted AS (
    UPDATE streams
       SET erased_deliveries = erased_deliveries + (SELECT count(*) FROM erased),
           erased_pending = erased_pending + (SELECT count(*) FROM erased WHERE state = 'pending')
     WHERE id = %(id)s AND EXISTS (SELECT FROM erased)
)
SELECT %(partition_id)s::bigint AS partition_id, endpoint_id, segment_id, sequence FROM page
 ORDER BY endpoint_id DESC, segment_id DESC, sequence DESC LIMIT 1
