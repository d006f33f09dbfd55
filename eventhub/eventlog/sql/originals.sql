-- The stored events that new events are copies of (FOX-05).

-- name: originals
SELECT v.at, v.stream, e.payload
  FROM (SELECT c.at, c.stream, s.id, s.partition_id, c.sequence
          FROM unnest(%(cause_at)s::integer[], %(cause_stream)s::text[], %(cause_segment)s::text[]::uuid[],
                      %(cause_sequence)s::bigint[]) AS c (at, stream, segment, sequence)
          JOIN streams t ON t.zone_id = %(zone_id)s AND t.name = c.stream AND t.deleted_at IS NULL
          JOIN segments s ON s.uuid = c.segment AND s.stream_id = t.id
         UNION ALL
        SELECT p.at, '', s.id, s.partition_id, f.sequence
          FROM unnest(%(id_at)s::integer[], %(id_stream)s::bigint[], %(id_client)s::bigint[],
                      %(id_incarnation)s::bigint[], %(id_number)s::bigint[])
               AS p (at, stream_id, client_id, incarnation, number)
          JOIN producer_numbers f
            ON (f.stream_id, f.client_id, f.incarnation, f.slot, f.number)
             = (p.stream_id, p.client_id, p.incarnation, mod(p.number, %(window)s)::integer, p.number)
          JOIN segments s ON s.uuid = f.segment
         UNION ALL
        SELECT k.at, '', s.id, s.partition_id, d.sequence
          FROM unnest(%(token_at)s::integer[], %(token_stream)s::bigint[], %(token_digest)s::bytea[])
               AS k (at, stream_id, digest)
          JOIN idempotency_digests d ON d.stream_id = k.stream_id AND d.digest = k.digest
          JOIN segments s ON s.uuid = d.segment) AS v
  JOIN events e ON e.partition_id = v.partition_id AND e.segment_id = v.id AND e.sequence = v.sequence
