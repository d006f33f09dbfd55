-- Forwarding: checkpoints together with the deliveries that they cover, and fan-outs written in batches.

-- name: add_streams
-- Inserts rows for streams with callbacks; an existing row keeps its position.
INSERT INTO forwarding (stream_id, segment, sequence)
SELECT v.stream_id, v.segment, v.sequence
  FROM unnest(%(streams)s::bigint[], %(segments)s::uuid[], %(sequences)s::bigint[]) AS v (stream_id, segment, sequence)
    ON CONFLICT (stream_id) DO NOTHING

-- name: known_streams
SELECT stream_id FROM forwarding

-- name: position
-- The position of a stream, under a lease.
SELECT segment::text, sequence, endpoint_id FROM forwarding WHERE stream_id = %s AND epoch = %s

-- name: move
-- Moves the checkpoint alone, when nothing matched. Every move renews the lease.
UPDATE forwarding
   SET segment = %(segment)s, sequence = %(sequence)s, endpoint_id = %(endpoint_id)s,
       expires_at = clock_timestamp() + make_interval(secs => %(lease_s)s)
 WHERE stream_id = %(stream_id)s AND epoch = %(epoch)s
   AND segment = %(from_segment)s AND sequence = %(from_sequence)s AND endpoint_id = %(from_endpoint_id)s

-- name: write
-- Moves the checkpoint and inserts the deliveries that it covers; writes nothing unless the lease is held and the position is
-- as expected. The row is locked first and moved last, so that the lease runs from the end of the statement. `flat` holds the
-- registrations of the first delivery, of the second, and so on, at `begins` to `ends`. Missing `version_ids` and `lanes` are
-- null. Lanes are marked (delivery/lane_marks.py). The commit does not wait for the disk: a crash of the database loses the
-- checkpoint together with the deliveries, and a claim, which precedes each request, waits for its own commit and all before.
-- `notify`: as the statement of that name in workers.sql does. NOTIFY serialises commits, which here take no time.
WITH held AS MATERIALIZED (
    SELECT stream_id FROM forwarding
     WHERE stream_id = %(stream_id)s AND epoch = %(epoch)s
       AND segment = %(from_segment)s AND sequence = %(from_sequence)s AND endpoint_id = %(from_endpoint_id)s
       AND set_config('synchronous_commit', 'off', true) = 'off'
       FOR NO KEY UPDATE
), written AS (
    INSERT INTO deliveries (partition_id, endpoint_id, segment_id, sequence, stream_id, zone_id, ordered, lane, registrations,
                            version_ids)
    SELECT v.partition_id, v.endpoint_id, v.segment_id, v.sequence, h.stream_id, e.zone_id, COALESCE(e.ordered, false), v.lane,
           flat.registrations[v.begins:v.ends], NULLIF(v.version_ids, '')::bigint[]
      FROM held h,
           (SELECT %(flat)s::bigint[] AS registrations) AS flat,
           unnest(%(partitions)s::bigint[], %(endpoints)s::bigint[], %(segment_ids)s::bigint[], %(sequences)s::bigint[],
                  %(begins)s::bigint[], %(ends)s::bigint[], %(version_ids)s::text[], %(lanes)s::bigint[])
               AS v (partition_id, endpoint_id, segment_id, sequence, begins, ends, version_ids, lane)
           LEFT JOIN LATERAL (SELECT zone_id, ordered FROM endpoints WHERE id = v.endpoint_id LIMIT 1) AS e ON true
    RETURNING endpoint_id, stream_id, lane, ordered
), marked AS (
    {mark_new}
)
UPDATE forwarding f
   SET segment = %(segment)s, sequence = %(sequence)s, endpoint_id = %(endpoint_id)s,
       expires_at = clock_timestamp() + make_interval(secs => %(lease_s)s)
  FROM held, (SELECT count(*) AS rows FROM written) AS done
 WHERE f.stream_id = held.stream_id AND done.rows > 0
RETURNING CASE WHEN %(notify)s THEN pg_notify('eventhub_deliveries', floor(random() * 1000000)::int::text) END AS notified

-- name: write_gap
-- Moves the checkpoint past removed events. Every endpoint with a registration that was in force for some of them, and whose
-- group, or its parent, was not suspended for all of them, gets a gap notice at the position before the first event still available.
WITH held AS MATERIALIZED (
    SELECT stream_id FROM forwarding
     WHERE stream_id = %(stream_id)s AND epoch = %(epoch)s
       AND segment = %(from_segment)s AND sequence = %(from_sequence)s AND endpoint_id = %(from_endpoint_id)s
       FOR NO KEY UPDATE
), lost AS (
    SELECT COALESCE(string_agg(DISTINCT removal_reason, ', '), 'dropped') AS why FROM segments
     WHERE stream_id = %(stream_id)s AND tier = 'dropped' AND first <= %(sequence)s AND last >= %(first)s
), concerned AS (
    SELECT v.endpoint_id, array_agg(DISTINCT v.registration_id ORDER BY v.registration_id) AS registrations
      FROM held h
      JOIN registration_versions v ON v.streams @> ARRAY[h.stream_id] AND v.endpoint_id IS NOT NULL AND NOT v.suspended
      JOIN barriers f ON f.id = v.from_barrier
      LEFT JOIN barriers u ON u.id = v.until_barrier
     WHERE f.sequences[array_position(f.streams, h.stream_id)] < %(sequence)s
       AND (u.id IS NULL OR u.sequences[array_position(u.streams, h.stream_id)] >= %(first)s)
       AND NOT EXISTS (SELECT FROM registration_groups g
                         JOIN suspensions x ON x.group_id IN (g.id, g.parent_id)
                         JOIN barriers xf ON xf.id = x.from_barrier
                         LEFT JOIN barriers xu ON xu.id = x.until_barrier
                        WHERE g.id = v.group_id
                          AND COALESCE(xf.sequences[array_position(xf.streams, h.stream_id)], 0) < %(first)s
                          AND (xu.id IS NULL OR
                               xu.sequences[array_position(xu.streams, h.stream_id)] >= %(sequence)s))
     GROUP BY v.endpoint_id
), written AS (
    INSERT INTO deliveries (partition_id, endpoint_id, segment_id, sequence, stream_id, zone_id, ordered, registrations,
                            gap_first, gap_reason)
    SELECT CASE WHEN to_regclass('deliveries_p' || s.partition_id) IS NULL THEN l.current_partition ELSE s.partition_id END,
           o.endpoint_id, s.id, %(sequence)s, h.stream_id, e.zone_id, e.ordered, o.registrations, %(first)s, lost.why
      FROM held h, lost, log_state l, segments s, concerned o
      JOIN endpoints e ON e.id = o.endpoint_id AND e.deleted_at IS NULL
     WHERE s.uuid = %(segment)s
    RETURNING endpoint_id, stream_id, lane, ordered
), marked AS (
    {mark_new}
), moved AS (
    UPDATE forwarding f
       SET segment = %(segment)s, sequence = %(sequence)s, endpoint_id = 0,
           expires_at = clock_timestamp() + make_interval(secs => %(lease_s)s)
      FROM held, (SELECT count(*) AS rows FROM written) AS done
     WHERE f.stream_id = held.stream_id
    RETURNING f.stream_id, done.rows
)
SELECT moved.rows AS notices, lost.why, s.name AS stream, z.name AS zone
  FROM lost, moved JOIN streams s ON s.id = moved.stream_id LEFT JOIN zones z ON z.id = s.zone_id

-- name: write_fanout
-- Moves the checkpoint past an event whose deliveries are written in batches.
WITH held AS MATERIALIZED (
    SELECT stream_id FROM forwarding
     WHERE stream_id = %(stream_id)s AND epoch = %(epoch)s
       AND segment = %(from_segment)s AND sequence = %(from_sequence)s AND endpoint_id = %(from_endpoint_id)s
       FOR NO KEY UPDATE
), written AS (
    INSERT INTO fanouts (partition_id, stream_id, segment_id, sequence, endpoints, registrations, ends, version_ids, lanes, total)
    SELECT %(partition_id)s, stream_id, %(segment_id)s, %(sequence)s,
           %(endpoints)s, %(flat)s, %(ends)s, %(version_ids)s, %(lanes)s, cardinality(%(endpoints)s::bigint[])
      FROM held
    RETURNING 1
)
UPDATE forwarding f
   SET segment = %(segment)s, sequence = %(sequence)s, endpoint_id = %(endpoint_id)s,
       expires_at = clock_timestamp() + make_interval(secs => %(lease_s)s)
  FROM held, (SELECT count(*) AS rows FROM written) AS done
 WHERE f.stream_id = held.stream_id AND done.rows > 0

-- name: expand
-- Writes the next batch of a fan-out that nobody else is writing, and its progress, in one statement. The oldest fan-out of a
-- stream comes first; streams are chosen at random, so that none waits for another.
WITH picked AS (
    SELECT partition_id, stream_id, segment_id, sequence, done, least(done + %(chunk)s, total) AS upto, total,
           endpoints, registrations, ends, version_ids, lanes
      FROM fanouts f
     WHERE NOT EXISTS (SELECT FROM fanouts older WHERE older.stream_id = f.stream_id AND older.sequence < f.sequence)
     ORDER BY random()
     LIMIT 1
       FOR UPDATE OF f SKIP LOCKED
), batch AS MATERIALIZED (
    SELECT partition_id, stream_id, segment_id, sequence, done, upto, total,
           endpoints[done + 1 : upto] AS endpoints, ends[done + 1 : upto] AS ends,
           CASE WHEN done = 0 THEN 0 ELSE ends[done] END AS skipped,
           registrations[CASE WHEN done = 0 THEN 1 ELSE ends[done] + 1 END : ends[upto]] AS registrations,
           version_ids[done + 1 : upto] AS version_ids, lanes[done + 1 : upto] AS lanes
      FROM picked
), advanced AS (
    UPDATE fanouts f SET done = p.upto
      FROM batch p
     WHERE f.stream_id = p.stream_id AND f.sequence = p.sequence AND f.done = p.done AND p.upto < p.total
    RETURNING f.stream_id
), complete AS (
    DELETE FROM fanouts f
     USING batch p
     WHERE f.stream_id = p.stream_id AND f.sequence = p.sequence AND f.done = p.done AND p.upto = p.total
    RETURNING f.stream_id
), written AS (
    INSERT INTO deliveries (partition_id, endpoint_id, segment_id, sequence, stream_id, zone_id, ordered, lane, registrations,
                            version_ids)
    SELECT p.partition_id, v.endpoint_id, p.segment_id, p.sequence, p.stream_id, e.zone_id, COALESCE(e.ordered, false), v.lane,
           p.registrations[COALESCE(v.before, p.skipped) - p.skipped + 1 : v.ends - p.skipped], NULLIF(v.version_ids, '')::bigint[]
      FROM batch p
      JOIN (SELECT stream_id FROM advanced UNION ALL SELECT stream_id FROM complete) AS moved
        ON moved.stream_id = p.stream_id
     CROSS JOIN LATERAL (
        SELECT endpoint_id, ends, version_ids, lane, lag(ends) OVER (ORDER BY n) AS before
          FROM unnest(p.endpoints, p.ends, p.version_ids, p.lanes) WITH ORDINALITY AS u (endpoint_id, ends, version_ids, lane, n)
     ) AS v
      LEFT JOIN LATERAL (SELECT zone_id, ordered FROM endpoints WHERE id = v.endpoint_id LIMIT 1) AS e ON true
    RETURNING endpoint_id, stream_id, lane, ordered
), marked AS (
    {mark_new}
)
SELECT count(*) AS deliveries FROM written

-- name: strategies
SELECT id, matching FROM streams WHERE id = ANY (%s::bigint[])

-- name: may_be_purged
-- Returns whether versions that ended at one of these barriers may have been deleted (registrations/purge.py).
SELECT count(*) < cardinality(%(barriers)s::bigint[]) AS may_be_purged
  FROM barriers WHERE id = ANY (%(barriers)s) AND created_at > now() - make_interval(secs => %(retained_s)s)

-- name: streams_of_barriers
-- The streams that the changes of some barriers concern, with these barriers and the groups suspended or resumed there, also
-- with their parents.
WITH changed AS (
    SELECT s.stream_id, b.id
      FROM barriers b, unnest(b.streams) AS s (stream_id)
     WHERE b.id = ANY (%(barriers)s) AND s.stream_id = ANY (%(streams)s)
), suspended AS (
    SELECT from_barrier AS id, group_id FROM suspensions WHERE from_barrier = ANY (%(barriers)s)
    UNION
    SELECT until_barrier, group_id FROM suspensions WHERE until_barrier = ANY (%(barriers)s)
), concerned AS (
    SELECT id, group_id FROM suspended
    UNION
    SELECT s.id, g.id FROM suspended s JOIN registration_groups g ON g.parent_id = s.group_id
)
SELECT c.stream_id, array_agg(DISTINCT c.id) AS barriers,
       COALESCE(array_agg(DISTINCT p.group_id) FILTER (WHERE p.group_id IS NOT NULL), '{}') AS groups
  FROM changed c LEFT JOIN concerned p USING (id)
 GROUP BY c.stream_id

-- name: segments
-- The ids and partitions of segments by UUID. Deliveries of a segment without a partition are in the newest partition.
SELECT uuid::text, id AS segment_id,
       CASE WHEN to_regclass('deliveries_p' || partition_id) IS NULL THEN current_partition ELSE partition_id END AS partition_id
  FROM segments, log_state WHERE uuid = ANY (%s::uuid[])

-- name: keys
-- The paths by which endpoints are ordered by key; of some endpoints, or of all.
SELECT id, order_by FROM endpoints WHERE ordered AND order_by <> '' AND deleted_at IS NULL AND (%(all)s OR id = ANY (%(ids)s::bigint[]))
