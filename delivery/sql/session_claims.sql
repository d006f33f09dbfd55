-- Claims: events of a session that were handed out to a holder and are not acknowledged. The holder is the session itself or, for the
-- session that has the position of a group, a member. The row of the session is locked by `lock`
-- first, so that one transaction at a time changes its claims and positions. Times are those of the database.

-- name: find
-- A session by id or name, as delivery/sql/sessions.sql has it, and the connection that serves it: `pulled`, if it is pulled and that was
-- written in the last hour. `queue_id`: the session that has the position of its group, if that shares.
SELECT s.id, s.name, s.kind, s.group_id AS session_group, s.disconnected OR COALESCE(g.disconnected, false) AS disconnected,
       COALESCE(g.quality, s.quality) AS quality, COALESCE(g.delivery_order, s.delivery_order) AS delivery_order,
       COALESCE(g.order_options, s.order_options) AS order_options, COALESCE(g.window_events, s.window_events) AS window_events,
       s.attachment, COALESCE(s.attached_process = 'pull' AND s.attached_at > now() - interval '1 hour', false) AS pulled,
       q.id AS queue_id, COALESCE(g.share_by, '') AS share_by
  FROM sessions s LEFT JOIN session_groups g ON g.id = s.group_id AND g.deleted_at IS NULL
  LEFT JOIN sessions q ON q.group_id = g.id AND q.kind = 'group' AND q.deleted_at IS NULL
 WHERE s.client_id = %(client_id)s AND (s.id = %(session_id)s::bigint OR s.name = %(name)s) AND s.kind <> 'group'
   AND s.deleted_at IS NULL

-- name: attach
-- All pulls of a session, in any process, have one attachment, which replaces a connection that serves it.
UPDATE sessions
   SET attachment = CASE WHEN attached_process = 'pull' AND attachment IS NOT NULL THEN attachment ELSE %(attachment)s::uuid END,
       attached_process = 'pull', attached_at = now()
 WHERE id = %(session_id)s AND deleted_at IS NULL
RETURNING attachment

-- name: lock
-- Lock a session, and the holder if it is another one, until the commit. Returns the connection that serves each.
SELECT id, attachment FROM sessions
 WHERE id IN (%(session_id)s, %(holder_id)s) AND deleted_at IS NULL
 ORDER BY id FOR NO KEY UPDATE

-- name: acknowledge
-- End the claims of a holder: those up to a sequence, and single ones. Returns the streams and how many ended in each.
WITH given AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(%(acknowledged)s::jsonb) AS g (stream_id bigint, through bigint, sequences bigint[])
), ended AS (
    DELETE FROM session_claims c USING given g
     WHERE c.session_id = %(session_id)s AND c.holder_id = %(holder_id)s AND c.stream_id = g.stream_id
       AND (c.sequence <= g.through OR c.sequence = ANY (g.sequences))
    RETURNING c.stream_id, c.sequence
), by_stream AS MATERIALIZED (
    SELECT stream_id, array_agg(sequence) AS sequences FROM ended GROUP BY stream_id
), saved AS (
    UPDATE session_cursors p SET acknowledged = p.acknowledged || b.sequences
      FROM by_stream b
     WHERE p.session_id = %(session_id)s AND p.stream_id = b.stream_id
)
SELECT stream_id, cardinality(sequences) AS events FROM by_stream

-- name: extend
-- Change how long a holder has events that were not handed out again meanwhile; 0 seconds give them back. Returns how many.
WITH given AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(%(extended)s::jsonb) AS g (stream_id bigint, sequences bigint[], visibility_s float8)
), changed AS (
    UPDATE session_claims c SET claimed_until = statement_timestamp() + make_interval(secs => g.visibility_s)
      FROM given g
     WHERE c.session_id = %(session_id)s AND c.holder_id = %(holder_id)s AND c.stream_id = g.stream_id
       AND c.sequence = ANY (g.sequences)
    RETURNING 1
)
SELECT count(*) FROM changed

-- name: retain
-- Let a holder have what it has of some streams for so many seconds more.
UPDATE session_claims SET claimed_until = statement_timestamp() + make_interval(secs => %(visibility_s)s::float8)
 WHERE session_id = %(session_id)s AND holder_id = %(holder_id)s AND claimed_until > statement_timestamp()
   AND stream_id = ANY (%(streams)s::bigint[])

-- name: give_back
-- Give back what a holder has.
UPDATE session_claims SET claimed_until = statement_timestamp()
 WHERE session_id = %(session_id)s AND holder_id = %(holder_id)s AND claimed_until > statement_timestamp()

-- name: skip
-- End the claims of events that were handed out as often as the settings of the session allow and whose time is over, as if they were
-- acknowledged, and record that to be announced. Returns the streams and how many were skipped in each.
WITH due AS MATERIALIZED (
    SELECT id FROM session_claims
     WHERE session_id = %(session_id)s AND claimed_until <= statement_timestamp() AND stream_id = ANY (%(streams)s::bigint[])
       AND attempts >= %(attempts_max)s
     ORDER BY id LIMIT %(skipped_max)s
), ended AS (
    DELETE FROM session_claims c USING due WHERE c.id = due.id
    RETURNING c.id, c.stream_id, c.segment, c.sequence, c.attempts
), by_stream AS MATERIALIZED (
    SELECT stream_id, array_agg(sequence) AS sequences FROM ended GROUP BY stream_id
), saved AS (
    UPDATE session_cursors p SET acknowledged = p.acknowledged || b.sequences
      FROM by_stream b
     WHERE p.session_id = %(session_id)s AND p.stream_id = b.stream_id
), named AS MATERIALIZED (
    SELECT jsonb_agg(jsonb_build_object('stream', t.name, 'segment', e.segment, 'sequence', e.sequence, 'attempts', e.attempts)
                     ORDER BY e.id) AS events
      FROM (SELECT * FROM ended ORDER BY id LIMIT %(named_max)s) e JOIN streams t ON t.id = e.stream_id
), recorded AS (
    INSERT INTO session_skips AS s (session_id, events, skipped, since)
    SELECT %(session_id)s, (SELECT count(*) FROM ended), n.events, now() FROM named n WHERE n.events IS NOT NULL
        ON CONFLICT (session_id) DO UPDATE
       SET events = s.events + excluded.events, since = COALESCE(s.since, excluded.since),
           skipped = CASE WHEN jsonb_array_length(s.skipped) < %(named_max)s THEN s.skipped || excluded.skipped ELSE s.skipped END
)
SELECT stream_id, cardinality(sequences) AS events FROM by_stream

-- name: renew
-- Hand out again the events whose time is over, in the order of their first time, while the holder has room. Those of a key that
-- another holder has wait, and those that were handed out as often as they may be are to be skipped.
WITH due AS MATERIALIZED (
    SELECT c.id FROM session_claims c
     WHERE c.session_id = %(session_id)s AND c.claimed_until <= statement_timestamp() AND c.stream_id = ANY (%(streams)s::bigint[])
       AND c.attempts < COALESCE(%(attempts_max)s::int, 2147483647)
       AND (c.order_key IS NULL
            OR NOT EXISTS (SELECT FROM session_claims o
                            WHERE o.session_id = c.session_id AND o.order_key = c.order_key AND o.holder_id <> %(holder_id)s
                              AND o.claimed_until > statement_timestamp()))
     ORDER BY c.id
     LIMIT (SELECT greatest(0, least(%(events_max)s::bigint, %(window)s::bigint - count(*)))
              FROM session_claims h
             WHERE h.session_id = %(session_id)s AND h.holder_id = %(holder_id)s AND h.claimed_until > statement_timestamp())
), renewed AS (
    UPDATE session_claims c
       SET holder_id = %(holder_id)s, attempts = c.attempts + 1,
           claimed_until = statement_timestamp() + make_interval(secs => %(visibility_s)s::float8)
      FROM due
     WHERE c.id = due.id
    RETURNING c.id, c.stream_id, c.segment::text AS segment, c.sequence, c.attempts
)
SELECT stream_id, segment, sequence, attempts FROM renewed ORDER BY id

-- name: claim
-- Claim events that no one has and that were not acknowledged, in the given order, while the holder has room. Returns the places of
-- those that are claimed (true) and of those that wait (false); all others are settled: they were acknowledged, or are claimed.
WITH given AS MATERIALIZED (
    SELECT g.*
      FROM unnest(%(streams)s::bigint[], %(segments)s::uuid[], %(sequences)s::bigint[], %(keys)s::bigint[])
           WITH ORDINALITY AS g (stream_id, segment, sequence, order_key, place)
), free AS MATERIALIZED (
    SELECT g.* FROM given g JOIN session_cursors p ON p.session_id = %(session_id)s AND p.stream_id = g.stream_id
     WHERE g.sequence > p.sequence AND g.sequence > COALESCE(p.claimed_sequence, 0) AND g.sequence <> ALL (p.acknowledged)
       AND cardinality(p.acknowledged) < %(acknowledged_max)s
       AND NOT EXISTS (SELECT FROM session_claims c
                        WHERE c.session_id = %(session_id)s AND c.stream_id = g.stream_id AND c.sequence = g.sequence)
), chosen AS MATERIALIZED (
    SELECT f.* FROM free f
     WHERE f.order_key IS NULL
        OR NOT EXISTS (SELECT FROM session_claims o
                        WHERE o.session_id = %(session_id)s AND o.order_key = f.order_key
                          AND (o.holder_id <> %(holder_id)s OR o.claimed_until <= statement_timestamp()))
     ORDER BY f.place
     LIMIT (SELECT greatest(0, least(%(events_max)s::bigint, %(window)s::bigint - count(*)))
              FROM session_claims h
             WHERE h.session_id = %(session_id)s AND h.holder_id = %(holder_id)s AND h.claimed_until > statement_timestamp())
), claimed AS (
    INSERT INTO session_claims (session_id, stream_id, segment, sequence, order_key, holder_id, claimed_until)
    SELECT %(session_id)s, stream_id, segment, sequence, order_key, %(holder_id)s,
           statement_timestamp() + make_interval(secs => %(visibility_s)s::float8)
      FROM chosen ORDER BY place
)
SELECT f.place::int AS place, f.place IN (SELECT place FROM chosen) AS claimed FROM free f

-- name: advance
-- Advance the positions of streams: what was claimed through, where that is given, and the cursor, to the event before the first
-- that is still claimed.
WITH given AS MATERIALIZED (
    SELECT * FROM unnest(%(streams)s::bigint[], %(segments)s::uuid[], %(sequences)s::bigint[]) AS g (stream_id, segment, sequence)
), reached AS MATERIALIZED (
    SELECT p.stream_id, mark.segment AS claimed_segment, mark.sequence AS claimed_sequence,
           COALESCE(first.segment, mark.segment) AS segment, COALESCE(first.sequence - 1, mark.sequence) AS sequence
      FROM session_cursors p JOIN given g USING (stream_id)
     CROSS JOIN LATERAL (
           SELECT m.segment, m.sequence
             FROM (VALUES (p.segment, p.sequence), (p.claimed_segment, p.claimed_sequence), (g.segment, g.sequence)) m (segment, sequence)
            WHERE m.sequence IS NOT NULL ORDER BY m.sequence DESC LIMIT 1) mark
      LEFT JOIN LATERAL (
           SELECT c.segment, c.sequence FROM session_claims c
            WHERE c.session_id = p.session_id AND c.stream_id = p.stream_id AND c.sequence <= mark.sequence
            ORDER BY c.sequence LIMIT 1) first ON true
     WHERE p.session_id = %(session_id)s
)
UPDATE session_cursors p
   SET claimed_segment = r.claimed_segment, claimed_sequence = r.claimed_sequence,
       segment = CASE WHEN r.sequence > p.sequence THEN r.segment ELSE p.segment END, sequence = greatest(r.sequence, p.sequence),
       acknowledged = ARRAY (SELECT a FROM unnest(p.acknowledged) a WHERE a > greatest(r.sequence, p.sequence) ORDER BY a),
       saved_at = now()
  FROM reached r
 WHERE p.session_id = %(session_id)s AND p.stream_id = r.stream_id

-- name: settle
-- End claims of events that are not to be delivered any more: they have expired, are gone, or may not be seen. Returns how many.
WITH given AS MATERIALIZED (
    SELECT * FROM unnest(%(streams)s::bigint[], %(sequences)s::bigint[]) AS g (stream_id, sequence)
), ended AS (
    DELETE FROM session_claims c USING given g
     WHERE c.session_id = %(session_id)s AND c.stream_id = g.stream_id AND c.sequence = g.sequence
    RETURNING 1
)
SELECT count(*) FROM ended

-- name: due
-- The state of a session for a holder: the connection that serves it, the settings that may change meanwhile, in how many seconds the
-- next claimed event may be handed out again (null: none is claimed), and how many the holder has.
SELECT s.attachment, s.disconnected OR COALESCE(g.disconnected, false) AS disconnected,
       COALESCE(g.window_events, s.window_events) AS window_events,
       CASE WHEN g.id IS NULL THEN s.attempts_max ELSE g.attempts_max END AS attempts_max, c.due_s, c.held
  FROM sessions s LEFT JOIN session_groups g ON g.id = s.group_id AND g.deleted_at IS NULL
 CROSS JOIN LATERAL (
       SELECT EXTRACT(EPOCH FROM min(c.claimed_until) - statement_timestamp())::float8 AS due_s,
              count(*) FILTER (WHERE c.holder_id = %(holder_id)s AND c.claimed_until > statement_timestamp()) AS held
         FROM session_claims c WHERE c.session_id = %(session_id)s) c
 WHERE s.id = %(holder_id)s AND s.deleted_at IS NULL

-- name: positions
-- Where to read the streams of a session on: after what is claimed or settled already, and the acknowledged events above that.
SELECT c.stream_id, t.name AS stream, mark.segment::text AS segment, mark.sequence,
       ARRAY (SELECT a FROM unnest(c.acknowledged) a WHERE a > mark.sequence) AS acknowledged
  FROM session_cursors c JOIN streams t ON t.id = c.stream_id AND t.deleted_at IS NULL
 CROSS JOIN LATERAL (
       SELECT m.segment, m.sequence
         FROM (VALUES (c.segment, c.sequence), (c.claimed_segment, c.claimed_sequence)) m (segment, sequence)
        WHERE m.sequence IS NOT NULL ORDER BY m.sequence DESC LIMIT 1) mark
 WHERE c.session_id = %(session_id)s
 ORDER BY t.name
 LIMIT %(streams_max)s

-- name: streams
-- The ids of streams of a session by name; of others there are no rows.
SELECT c.stream_id AS id, t.name
  FROM session_cursors c JOIN streams t ON t.id = c.stream_id AND t.deleted_at IS NULL
 WHERE c.session_id = %(session_id)s AND t.name = ANY (%(names)s::text[])

-- name: restart
-- Begin again in another history of a stream, without claims.
WITH ended AS (
    DELETE FROM session_claims WHERE session_id = %(session_id)s AND stream_id = %(stream_id)s
)
UPDATE session_cursors
   SET segment = %(segment)s, sequence = %(sequence)s, claimed_segment = NULL, claimed_sequence = NULL, acknowledged = '{}',
       saved_at = now()
 WHERE session_id = %(session_id)s AND stream_id = %(stream_id)s

-- name: skips_due
-- Skipped events to announce now: the first of a session at once, later ones together after an interval. A session of kind `group`
-- has the position of a group that shares.
WITH due AS (
    SELECT * FROM session_skips
     WHERE events > 0 AND announced_at <= now() - make_interval(secs => %(interval_s)s)
     ORDER BY announced_at, session_id
     LIMIT %(sessions_max)s
       FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE session_skips k SET events = 0, skipped = '[]', since = NULL, announced_at = now()
      FROM due d WHERE k.session_id = d.session_id
)
SELECT z.name AS zone, c.name AS client, CASE WHEN s.kind <> 'group' THEN s.id END AS session,
       CASE WHEN s.kind = 'group' THEN s.group_id END AS session_group, CASE WHEN s.kind = 'group' THEN COALESCE(g.name, s.name) ELSE s.name END AS name,
       d.events, d.skipped, (extract(epoch FROM d.since) * 1000000)::bigint AS since_us
  FROM due d
  JOIN sessions s ON s.id = d.session_id
  JOIN zones z ON z.id = s.zone_id
  JOIN clients c ON c.id = s.client_id
  LEFT JOIN session_groups g ON g.id = s.group_id
 ORDER BY z.name, d.session_id

-- name: forget_skips
DELETE FROM session_skips
 WHERE events = 0 AND announced_at <= now() - make_interval(secs => %(interval_s)s)

-- name: count
-- How many events are handed out and not acknowledged, up to a bound.
SELECT count(*) FROM (SELECT FROM session_claims LIMIT %(rows_max)s) AS claimed
