-- Deletes ended versions that nothing can read any more, barriers without references, and expired secrets.

-- name: ended
-- A batch of ended versions by the barrier of their end, and whether each may be deleted. All of these must hold:
-- it ended before the retention time, which covers every reader of changes; no event within its bounds can be read on any of
-- its streams, from the log or the archive; forwarders have passed its bounds, so gap notices have named it, and no fan-out
-- of its events is open; no usable match index holds it as current (`epochs`, `xmins`, `afters`). A transient stream and a
-- deleted one are exempt: they have no position to pass. A replay run may also need it, as long as its row exists.
-- The endpoint is that of a version with a report or a variable: a delivery may need it (`needed`).
WITH ended AS MATERIALIZED (
    SELECT id, from_barrier, until_barrier, streams, endpoint_id, report IS NOT NULL OR variable IS NOT NULL AS is_needed,
           endpoint_id IS NOT NULL AND NOT suspended AS is_forwarded
      FROM registration_versions
     WHERE until_barrier IS NOT NULL AND (until_barrier, id) > (%(barrier)s, %(id)s)
     ORDER BY until_barrier, id
     LIMIT %(rows_max)s
), bounds AS MATERIALIZED (
    SELECT v.id, v.is_forwarded, s.id AS stream_id, s.durability = 'transient' OR s.deleted_at IS NOT NULL AS is_exempt, u.xid,
           u.created_at < now() - make_interval(secs => %(retained_s)s) AS is_old,
           COALESCE(f.sequences[array_position(f.streams, s.id)], 0) AS since,
           COALESCE(u.sequences[array_position(u.streams, s.id)], 0) AS until
      FROM ended v
      JOIN barriers f ON f.id = v.from_barrier
      JOIN barriers u ON u.id = v.until_barrier
     CROSS JOIN LATERAL unnest(v.streams) AS n (id)
      JOIN streams s ON s.id = n.id
), free AS (
    SELECT b.id
      FROM bounds b
      LEFT JOIN forwarding w ON w.stream_id = b.stream_id
      LEFT JOIN unnest(%(epochs)s::bigint[], %(xmins)s::text[], %(afters)s::bigint[]) AS e (stream_id, xmin, after)
        ON e.stream_id = b.stream_id
     GROUP BY b.id
    HAVING bool_and(b.is_old)
       -- the last readable segment that begins at or before the end: if it has no event within the bounds, no segment has
       AND bool_and(b.is_exempt OR b.until <= b.since OR NOT COALESCE(
               (SELECT COALESCE(g.last, b.until) > b.since FROM segments g
                 WHERE g.stream_id = b.stream_id AND g.tier <> 'dropped' AND g.first <= b.until
                   AND (g.last IS NULL OR g.last >= g.first)
                 ORDER BY g.first DESC, g.id DESC LIMIT 1), false))
       AND bool_and(NOT b.is_forwarded OR b.is_exempt OR b.until <= b.since
                    OR COALESCE(w.sequence >= b.until, false)
                       AND NOT EXISTS (SELECT FROM fanouts x WHERE x.stream_id = b.stream_id AND x.sequence <= b.until))
       AND bool_and(NOT b.is_forwarded OR e.stream_id IS NULL
                    OR (b.xid < e.xmin::xid8 OR b.xid >= pg_snapshot_xmax(pg_current_snapshot()))
                       AND b.until <= GREATEST(e.after, b.since))
)
SELECT v.until_barrier AS barrier, v.id,
       free.id IS NOT NULL AND NOT EXISTS (SELECT FROM replay_runs r WHERE r.version_id = v.id) AS is_free,
       CASE WHEN v.is_needed THEN v.endpoint_id END AS endpoint_id
  FROM ended v LEFT JOIN free USING (id)
 ORDER BY v.until_barrier, v.id

-- name: needed
-- Versions whose reports and variables are needed by deliveries that may still be posted; by endpoint, to read only their deliveries.
SELECT DISTINCT n.id
  FROM (SELECT version_ids FROM deliveries WHERE endpoint_id = ANY (%(endpoints)s::bigint[]) AND state = 'pending' AND NOT ordered
        UNION ALL
        SELECT version_ids FROM deliveries WHERE endpoint_id = ANY (%(endpoints)s::bigint[]) AND state = 'pending' AND ordered
        UNION ALL
        SELECT version_ids FROM deliveries WHERE endpoint_id = ANY (%(endpoints)s::bigint[]) AND state = 'dead_lettered') AS d
 CROSS JOIN LATERAL unnest(d.version_ids) AS n (id)

-- name: purge
-- Recorded by stream, so that no match index is used that may hold a deleted version as current (match_index/epochs/facts.py).
-- A transaction id in the future came with a dump; that transaction ended before any index was built here.
WITH deleted AS (
    DELETE FROM registration_versions WHERE id = ANY (%(versions)s::bigint[]) AND until_barrier IS NOT NULL
    RETURNING until_barrier, streams, endpoint_id, suspended
), noted AS (
    SELECT n.id AS stream_id, max(b.xid) AS xid
      FROM deleted v JOIN barriers b ON b.id = v.until_barrier CROSS JOIN LATERAL unnest(v.streams) AS n (id)
     WHERE v.endpoint_id IS NOT NULL AND NOT v.suspended AND b.xid < pg_snapshot_xmax(pg_current_snapshot())
     GROUP BY n.id
)
INSERT INTO purged_versions AS p (stream_id, xid, history)
SELECT n.stream_id, n.xid, l.history FROM noted n, log_state l ORDER BY n.stream_id
    ON CONFLICT (stream_id) DO UPDATE
   SET xid = CASE WHEN p.history = excluded.history THEN GREATEST(p.xid, excluded.xid) ELSE excluded.xid END,
       history = excluded.history

-- name: purge_patterns
-- A batch of ended versions of patterns that no forwarder reads any more: each ended before the retention time, its group has
-- passed its end or is deleted, and neither the snapshot of the group nor its journal names it. Returns their number.
WITH purged AS (DELETE FROM pattern_versions WHERE id IN (
    SELECT v.id
      FROM pattern_versions v
      JOIN barriers u ON u.id = v.until_barrier
      LEFT JOIN pattern_leases l ON l.group_id = v.group_id
     WHERE u.created_at < now() - make_interval(secs => %(retained_s)s)
       AND (l.group_id IS NULL
            OR NOT EXISTS (SELECT FROM unnest(u.streams, u.sequences) AS e (stream_id, sequence)
                             JOIN unnest(l.streams, l.sequences) AS c (stream_id, sequence) USING (stream_id)
                            WHERE c.sequence < e.sequence)
           AND NOT EXISTS (SELECT FROM pattern_states s WHERE s.group_id = v.group_id AND v.id = ANY (s.versions))
           AND NOT EXISTS (SELECT FROM pattern_journal j
                            WHERE j.group_id = v.group_id AND (v.id = ANY (j.added) OR v.id = ANY (j.removed))))
     LIMIT %(rows_max)s)
    RETURNING 1
)
SELECT count(*) FROM purged

-- name: purge_deleted_patterns
-- A batch of deleted patterns without versions, with their statuses. Returns their number.
WITH unused AS MATERIALIZED (
    SELECT p.id FROM patterns p
     WHERE p.deleted_at < now() - make_interval(secs => %(retained_s)s)
       AND NOT EXISTS (SELECT FROM pattern_versions v WHERE v.pattern_id = p.id)
     LIMIT %(rows_max)s
), forgotten AS (
    DELETE FROM pattern_statuses WHERE pattern_id IN (SELECT id FROM unused)
), purged AS (
    DELETE FROM patterns WHERE id IN (SELECT id FROM unused) RETURNING 1
)
SELECT count(*) FROM purged

-- name: purge_deleted_groups
-- A batch of deleted pattern groups without patterns. Returns their number.
WITH purged AS (DELETE FROM pattern_groups WHERE id IN (
    SELECT g.id FROM pattern_groups g
     WHERE g.deleted_at < now() - make_interval(secs => %(retained_s)s)
       AND NOT EXISTS (SELECT FROM patterns p WHERE p.group_id = g.id)
     LIMIT %(rows_max)s)
    RETURNING 1
)
SELECT count(*) FROM purged

-- name: purge_barriers
-- A batch of barriers older than the retention time, without those that are referred to. Returns the last one that was
-- checked and the number of deleted ones.
WITH checked AS MATERIALIZED (
    SELECT id FROM barriers
     WHERE id > %(after)s AND created_at < now() - make_interval(secs => %(retained_s)s)
     ORDER BY id LIMIT %(rows_max)s
), deleted AS (
    DELETE FROM barriers b USING checked
     WHERE b.id = checked.id
       AND NOT EXISTS (SELECT FROM registration_versions v WHERE v.from_barrier = b.id)
       AND NOT EXISTS (SELECT FROM registration_versions v WHERE v.until_barrier = b.id)
       AND NOT EXISTS (SELECT FROM pattern_versions v WHERE v.from_barrier = b.id)
       AND NOT EXISTS (SELECT FROM pattern_versions v WHERE v.until_barrier = b.id)
       AND NOT EXISTS (SELECT FROM suspensions x WHERE x.from_barrier = b.id)
       AND NOT EXISTS (SELECT FROM suspensions x WHERE x.until_barrier = b.id)
    RETURNING 1
)
SELECT (SELECT max(id) FROM checked) AS last, (SELECT count(*) FROM deleted) AS deleted

-- name: expired_secrets
DELETE FROM endpoint_secrets WHERE expires_at <= now()
