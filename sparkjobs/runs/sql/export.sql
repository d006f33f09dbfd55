-- The input tables of jobs (sparkjobs/tables.py), and the statements that lock and find what they read. Placeholders are
-- filled in as literals before a statement is sent: with parameters the driver would hold a whole result in memory.

-- name: hold
-- Lock one partition alone: a lock on its parent would keep other partitions from being detached.
LOCK TABLE {partition} IN ACCESS SHARE MODE

-- name: hold_if_exists
-- An error would make the driver refuse everything, even the rollback to a savepoint.
DO $$BEGIN LOCK TABLE {partition} IN ACCESS SHARE MODE; EXCEPTION WHEN undefined_table THEN NULL; END$$

-- name: exists
-- Now, not at the snapshot's time.
SELECT to_regclass({table}) IS NOT NULL AS is_there

-- name: savepoint
SAVEPOINT held

-- name: release_locks
-- Roll back to the newest savepoint, which releases later locks and resets later settings.
ROLLBACK TO SAVEPOINT held

-- name: forget_savepoint
RELEASE SAVEPOINT held

-- name: now
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now_us

-- name: moment
-- Of one stream, as builders of match indexes read it (registrations/sql/catalog.sql).
{moment}

-- name: walk_indexes
-- Events are read in the order of their key; sorting a partition would write it to disk once more.
SET LOCAL enable_sort = off

-- name: requested_streams
-- The requested streams; `system`, which belongs to no zone, only if it is named.
SELECT id FROM streams
 WHERE durability <> 'transient' AND deleted_at IS NULL
   AND CASE WHEN {streams}::bigint[] IS NULL THEN {zone}::bigint IS NULL OR zone_id = {zone}::bigint
            ELSE id = ANY ({streams}::bigint[]) AND ({zone}::bigint IS NULL OR zone_id = {zone}::bigint OR zone_id IS NULL) END

-- name: requested_segments
-- The segments of requested streams that may contain events of the time range.
SELECT id FROM segments
 WHERE stream_id IN ({requested_streams})
   AND ({since}::bigint IS NULL OR sealed_at IS NULL OR sealed_at >= to_timestamp({since}::bigint / 1000000.0))
   AND ({until}::bigint IS NULL OR opened_at <= to_timestamp({until}::bigint / 1000000.0))

-- name: streams
SELECT s.id, COALESCE(s.zone_id, 0) AS zone_id, COALESCE(z.name, '') AS zone, s.name, h.sequence AS head,
       f.sequence AS forwarded, n.needed, s.keyed, s.archive, s.hold, s.on_lag, s.retain_events, s.retain_bytes,
       s.retain_age_s
  FROM streams s
  JOIN heads h ON h.stream_id = s.id
  LEFT JOIN zones z ON z.id = s.zone_id
  LEFT JOIN forwarding f ON f.stream_id = s.id
  LEFT JOIN ({needed}) AS n (stream_id, needed) ON n.stream_id = s.id
 WHERE s.id IN ({requested_streams})

-- name: segments
-- With the manifest's path, from which the file's is found.
SELECT s.id, s.uuid::text, s.stream_id, s.partition_id, s.first, COALESCE(s.last, h.sequence) AS last,
       COALESCE(s.bytes, h.bytes) AS bytes, s.last IS NOT NULL AS sealed, s.tier, s.opened_at,
       s.sealed_at, s.removed_at, s.removal_reason, s.archive_path IS NOT NULL AS archived,
       s.id IN ({requested_segments}) AS requested, s.archive_path AS manifest
  FROM segments s
  LEFT JOIN heads h ON h.segment_id = s.id AND s.last IS NULL
 WHERE s.stream_id IN ({requested_streams})
 ORDER BY s.stream_id, s.first, s.id

-- name: events
-- Of some segments of a partition, one segment after the other, each in order.
SELECT e.segment_id, e.sequence, e.appended_at, e.mask, e.payload
  FROM unnest({segments}::bigint[]) AS selected (id)
 CROSS JOIN LATERAL (SELECT * FROM {partition}
                      WHERE partition_id = {partition_id} AND segment_id = selected.id
                      ORDER BY sequence) AS e

-- name: partitions_copied
-- The partitions with events that are copied, because the configured archive does not have them.
SELECT DISTINCT partition_id FROM segments
 WHERE tier = 'live' AND (last IS NULL OR last >= first) AND (archive_path IS NULL OR NOT {has_archive}) AND id IN ({requested_segments})

-- name: partitions_live
-- The partitions with requested segments that are both live and archived.
SELECT DISTINCT partition_id FROM segments
 WHERE tier = 'live' AND archive_path IS NOT NULL AND id IN ({requested_segments})
 ORDER BY partition_id

-- name: no_rows
-- Instead of a partition that does not exist.
(SELECT NULL::integer AS partition_id, NULL::bigint AS segment_id, NULL::bigint AS sequence, NULL::bytea AS payload WHERE false)

-- name: live
-- Of one partition.
SELECT s.id AS segment_id, e.events, e.first, e.last, e.bytes,
       CASE WHEN e.events = s.last - s.first + 1 THEN '{{}}'::bigint[]
            ELSE ARRAY(SELECT n FROM generate_series(s.first, s.last) AS n
                        WHERE NOT EXISTS (SELECT FROM {partition} AS x WHERE x.partition_id = {partition_id} AND x.segment_id = s.id
                                             AND x.sequence = n)
                        ORDER BY n LIMIT {missing_max}) END AS missing
  FROM segments s
 CROSS JOIN LATERAL (SELECT count(*) AS events, min(sequence) AS first, max(sequence) AS last,
                            COALESCE(sum(octet_length(payload)), 0)::bigint AS bytes
                       FROM {partition} AS r WHERE r.partition_id = {partition_id} AND r.segment_id = s.id) AS e
 WHERE s.partition_id = {partition_id} AND s.tier = 'live' AND s.archive_path IS NOT NULL AND s.id IN ({requested_segments})

-- name: producers
SELECT p.stream_id, COALESCE(c.name, '') AS client, p.incarnation, p.highest_number
  FROM producers p LEFT JOIN clients c ON c.id = p.client_id
 WHERE p.stream_id IN ({requested_streams})

-- name: versions
-- Bounds as in registrations/sql/catalog.sql. A stream that is absent from the end's barrier did not have the registration
-- at that time.
SELECT t.stream_id, v.id, v.registration_id, v.number, r.client_id, c.name AS client, r.zone_id, z.name AS zone,
       v.endpoint_id, v.language, v.filter::text AS filter,
       COALESCE(f.sequences[array_position(f.streams, t.stream_id)], 0) AS since,
       CASE WHEN u.id IS NOT NULL THEN COALESCE(u.sequences[array_position(u.streams, t.stream_id)], 0) END AS until,
       v.suspended, v.group_id, (v.report IS NOT NULL)::int + 2 * (v.variable IS NOT NULL)::int AS report,
       f.created_at AS started_at_us, u.created_at AS ended_at_us
  FROM registration_versions v
 CROSS JOIN LATERAL unnest(v.streams) AS t (stream_id)
  JOIN registrations r ON r.id = v.registration_id
  JOIN clients c ON c.id = r.client_id
  JOIN zones z ON z.id = r.zone_id
  JOIN barriers f ON f.id = v.from_barrier
  LEFT JOIN barriers u ON u.id = v.until_barrier
 WHERE t.stream_id IN ({requested_streams})

-- name: suspensions
-- A suspension of a parent is returned for each of its groups.
SELECT g.stream_id, g.group_id, COALESCE(f.sequences[array_position(f.streams, g.stream_id)], 0) AS since,
       CASE WHEN u.id IS NOT NULL THEN COALESCE(u.sequences[array_position(u.streams, g.stream_id)], 0) END AS until
  FROM group_streams g
  JOIN registration_groups o ON o.id = g.group_id
  JOIN suspensions s ON s.group_id IN (o.id, o.parent_id)
  JOIN barriers f ON f.id = s.from_barrier
  LEFT JOIN barriers u ON u.id = s.until_barrier
 WHERE g.stream_id IN ({requested_streams})

-- name: types
-- Each type with the number of its versions, their declaration times, and its declared supertypes.
WITH RECURSIVE newest AS (
    SELECT zone_id, domain, type, max(version) AS versions, min(parent) AS parent,
           array_agg((extract(epoch FROM declared_at) * 1000000)::bigint ORDER BY version) AS declared_us
      FROM event_types GROUP BY zone_id, domain, type
), lineages AS (
    SELECT zone_id, domain, type, versions, declared_us, ARRAY[type] AS lineage, parent FROM newest
    UNION ALL
    SELECT a.zone_id, a.domain, a.type, a.versions, a.declared_us, a.lineage || n.type, n.parent
      FROM lineages a JOIN newest n ON (n.zone_id, n.domain, n.type) = (a.zone_id, a.domain, a.parent)
)
SELECT zone_id, domain, type, versions, declared_us, lineage FROM lineages
 WHERE parent IS NULL AND ({zone}::bigint IS NULL OR zone_id = {zone}::bigint)

-- name: clients
SELECT c.id, c.zone_id, z.name AS zone, c.name, ARRAY(SELECT jsonb_array_elements_text(c.groups)) AS groups
  FROM clients c JOIN zones z ON z.id = c.zone_id
 WHERE {zone}::bigint IS NULL OR c.zone_id = {zone}::bigint

-- name: endpoints
SELECT e.id, e.zone_id, e.client_id, c.name AS client, e.url AS host, e.ordered, e.enabled,
       e.deleted_at
  FROM endpoints e JOIN clients c ON c.id = e.client_id
 WHERE {zone}::bigint IS NULL OR e.zone_id = {zone}::bigint

-- name: partitions
-- The partitions of all partitioned tables, including detached ones that are not dropped yet.
SELECT c.relname::text AS name, split_part(c.relname, '_', 1) AS parent, substring(c.relname FROM '[0-9]+$')::bigint AS number
  FROM pg_class c
 WHERE c.relkind = 'r' AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'deliveries'::regclass)
   AND c.relname ~ '^(events_p|deliveries_p|attempts_|listeners_)[0-9]+$'
 ORDER BY parent, number

-- name: deliveries
-- Without those that replays wrote: no registration made them.
SELECT endpoint_id, segment_id, sequence, stream_id, partition_id, registrations, state, attempts,
       created_at, finished_at, gap_first, gap_reason
  FROM {partition} WHERE segment_id IN ({requested_segments}) AND replay_id IS NULL

-- name: attempts
-- An attempt of a batch is an attempt of each of its deliveries. In a partition that was detached before release 0.1 was complete,
-- which has no such column, `sequences` is the outer one.
SELECT attempted_at, endpoint_id, segment_id, unnest(COALESCE(of_batch, ARRAY[sequence])) AS sequence, number, outcome, status,
       duration_ms
  FROM (SELECT NULL::bigint[] AS sequences) AS missing,
       LATERAL (SELECT attempted_at, endpoint_id, segment_id, sequence, number, outcome, status, duration_ms,
                       sequences AS of_batch
                  FROM {partition} WHERE segment_id IN ({requested_segments})) AS attempt

-- name: listeners
SELECT l.id, l.stream_id, l.zone_id, l.client_id, c.name AS client, l.node, l.transport, l.name, l.start, l.sequence, l.mask,
       l.filter, l.registrations, l.request_digest, l.delivered_sequence, l.delivered_events, l.started_at, l.updated_at,
       l.ended_at, l.end_reason
  FROM {partition} l LEFT JOIN clients c ON c.id = l.client_id
 WHERE l.stream_id IN ({requested_streams})

-- name: fanouts
SELECT stream_id, segment_id, sequence, endpoints, total, done FROM fanouts WHERE segment_id IN ({requested_segments})

-- name: event_partitions
SELECT g.id, g.id = l.current_partition AS current, g.size AS size_bytes, g.live AS live_bytes, g.stored AS stored_bytes
  FROM ({event_partitions}) AS g (id, attached, pending, size, live, stored, nonempty), log_state l

-- name: retired
-- With the ranges of segments whose deliveries a partition held; all segments where that is unknown.
SELECT parent, name,
       ARRAY(SELECT lower(r) FROM unnest(COALESCE(segments, '{{[0,9223372036854775807)}}')) AS r ORDER BY r) AS segments_from,
       ARRAY(SELECT upper(r) - 1 FROM unnest(COALESCE(segments, '{{[0,9223372036854775807)}}')) AS r ORDER BY r) AS segments_to,
       to_char(to_date(substring(name FROM '_([0-9]{{8}})$'), 'YYYYMMDD'), 'YYYY-MM-DD') AS day,
       rows, retired_at AS at_us, archive_path AS manifest
  FROM retired_partitions
 ORDER BY id
