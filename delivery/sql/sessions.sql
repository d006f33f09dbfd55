-- Delivery to consumer sessions: the connection that serves a session, and the positions that it saves. An attachment is the id of
-- one connection to a session; everything that a connection writes has its attachment as condition.

-- name: find
-- A session by name. The settings of its group apply instead of its own.
SELECT s.id, s.name, s.kind, s.group_id AS session_group, s.disconnected OR COALESCE(g.disconnected, false) AS disconnected,
       COALESCE(g.quality, s.quality) AS quality, COALESCE(g.delivery_order, s.delivery_order) AS delivery_order,
       COALESCE(g.order_options, s.order_options) AS order_options, COALESCE(g.window_events, s.window_events) AS window_events
  FROM sessions s LEFT JOIN session_groups g ON g.id = s.group_id AND g.deleted_at IS NULL
 WHERE s.client_id = %(client_id)s AND s.name = %(name)s AND s.deleted_at IS NULL

-- name: attach
UPDATE sessions SET attachment = %(attachment)s, attached_process = %(process)s, attached_at = now()
 WHERE id = %(session_id)s AND deleted_at IS NULL
RETURNING id

-- name: end_claims
-- Delete the claims of a session, as a connection begins that serves it without them. Events of its group that it has come again.
WITH given_back AS (
    UPDATE session_claims SET claimed_until = now() WHERE holder_id = %(session_id)s AND session_id <> %(session_id)s
), ended AS (
    DELETE FROM session_claims WHERE session_id = %(session_id)s
)
UPDATE session_cursors SET claimed_segment = NULL, claimed_sequence = NULL
 WHERE session_id = %(session_id)s AND claimed_sequence IS NOT NULL

-- name: detach
-- `attached_at` remains: retention counts from it.
UPDATE sessions s SET attachment = NULL, attached_process = NULL
  FROM unnest(%(sessions)s::bigint[], %(attachments)s::uuid[]) AS g (session_id, attachment)
 WHERE s.id = g.session_id AND s.attachment = g.attachment

-- name: positions
-- The positions of a session in the streams that exist.
SELECT c.stream_id, t.name AS stream, c.segment::text AS segment, c.sequence, c.acknowledged
  FROM session_cursors c JOIN streams t ON t.id = c.stream_id AND t.deleted_at IS NULL
 WHERE c.session_id = %(session_id)s
 ORDER BY t.name
 LIMIT %(streams_max)s

-- name: check
-- The settings, as `find` returns them, of sessions that are still attached to these connections.
SELECT s.id, s.name, s.kind, s.group_id AS session_group, s.disconnected OR COALESCE(g.disconnected, false) AS disconnected,
       COALESCE(g.quality, s.quality) AS quality, COALESCE(g.delivery_order, s.delivery_order) AS delivery_order,
       COALESCE(g.order_options, s.order_options) AS order_options, COALESCE(g.window_events, s.window_events) AS window_events,
       s.attachment, s.deleted_at IS NOT NULL AS deleted
  FROM sessions s LEFT JOIN session_groups g ON g.id = s.group_id AND g.deleted_at IS NULL
 WHERE s.id = ANY (%(sessions)s::bigint[])

-- name: save
-- Saves positions (JSON) of sessions that are still attached to the connections that write them; a lock keeps another connection
-- from attaching until the commit, so that it reads what was saved last. Returns the sessions that are attached.
WITH given AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(%(positions)s::jsonb)
        AS g (session_id bigint, stream_id bigint, attachment uuid, segment uuid, sequence bigint, acknowledged bigint[])
), attached AS MATERIALIZED (
    SELECT s.id FROM sessions s
     WHERE (s.id, s.attachment) IN (SELECT session_id, attachment FROM given)
     ORDER BY s.id FOR SHARE
), saved AS (
    UPDATE session_cursors c
       SET segment = g.segment, sequence = g.sequence, acknowledged = g.acknowledged, saved_at = now()
      FROM given g JOIN attached a ON a.id = g.session_id
     WHERE c.session_id = g.session_id AND c.stream_id = g.stream_id
)
SELECT id FROM attached
