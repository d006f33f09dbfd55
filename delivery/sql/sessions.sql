-- Delivery to consumer sessions: the connection that serves a session, and the positions that it saves. An attachment is the id of
-- one connection to a session; everything that a connection writes has its attachment as condition. `{sessions}` selects the ids of
-- sessions.

-- name: name
-- The name of a session of a client; that of a group is none of its sessions.
SELECT name FROM sessions WHERE id = %(session_id)s AND client_id = %(client_id)s AND kind <> 'group' AND deleted_at IS NULL

-- name: lock
-- One session, locked: no connection saves positions of the session or attaches to it until the end of the transaction.
SELECT s.id, s.name, s.kind, s.group_id AS session_group, s.disconnected OR COALESCE(g.disconnected, false) AS disconnected,
       COALESCE(g.quality, s.quality) AS quality, COALESCE(g.delivery_order, s.delivery_order) AS delivery_order,
       COALESCE(g.order_options, s.order_options) AS order_options, COALESCE(g.window_events, s.window_events) AS window_events
  FROM sessions s LEFT JOIN session_groups g ON g.id = s.group_id AND g.deleted_at IS NULL
 WHERE s.id = %(session_id)s AND s.deleted_at IS NULL
   FOR NO KEY UPDATE OF s

-- name: attach
-- Attaches connections to sessions by client and name, those of which events may be delivered to; the others have no
-- acknowledgements. The settings of its group apply instead of a session's own. `replaces`: a connection of another process may
-- serve the session. The sessions are locked in their order, as all statements do that lock several. The commit waits for the
-- disk: a connection whose attachment a crash has lost would be ended as replaced.
WITH found AS MATERIALIZED (
    SELECT s.client_id, s.id, s.name, s.kind, s.group_id AS session_group,
           s.disconnected OR COALESCE(g.disconnected, false) AS disconnected, COALESCE(g.quality, s.quality) AS quality,
           COALESCE(g.delivery_order, s.delivery_order) AS delivery_order,
           COALESCE(g.order_options, s.order_options) AS order_options,
           COALESCE(g.window_events, s.window_events) AS window_events, k.attachment,
           s.attachment IS NOT NULL AND s.attached_process IS DISTINCT FROM %(process)s AS replaces
      FROM unnest(%(clients)s::bigint[], %(names)s::text[], %(attachments)s::uuid[]) AS k (client_id, name, attachment)
      JOIN sessions s ON s.client_id = k.client_id AND s.name = k.name AND s.deleted_at IS NULL
      LEFT JOIN session_groups g ON g.id = s.group_id AND g.deleted_at IS NULL
     ORDER BY s.id
       FOR NO KEY UPDATE OF s
), attached AS (
    UPDATE sessions s SET attachment = f.attachment, attached_process = %(process)s, attached_at = now()
      FROM found f
     WHERE s.id = f.id AND f.kind = 'consumer' AND NOT f.disconnected
    RETURNING s.id, s.acknowledgements
)
SELECT f.client_id, f.id, f.name, f.kind, f.session_group, f.disconnected, f.quality, f.delivery_order, f.order_options,
       f.window_events, a.acknowledgements, f.replaces
  FROM found f LEFT JOIN attached a ON a.id = f.id

-- name: attached
-- The sessions that these connections are attached to.
SELECT s.id
  FROM unnest(%(clients)s::bigint[], %(names)s::text[], %(attachments)s::uuid[]) AS k (client_id, name, attachment)
  JOIN sessions s ON s.client_id = k.client_id AND s.name = k.name AND s.attachment = k.attachment AND s.deleted_at IS NULL

-- name: end_claims
-- Deletes the claims of sessions, as connections begin that serve them without, and deliver everything again. Events of their
-- groups that they have come again.
WITH serving AS MATERIALIZED (
    {sessions}
), given_back AS (
    UPDATE session_claims SET claimed_until = now()
     WHERE holder_id IN (SELECT id FROM serving) AND session_id <> holder_id
), ended AS (
    DELETE FROM session_claims WHERE session_id IN (SELECT id FROM serving)
)
UPDATE session_cursors SET claimed_segment = NULL, claimed_sequence = NULL, redeliver = '{}'
 WHERE session_id IN (SELECT id FROM serving) AND (claimed_sequence IS NOT NULL OR redeliver <> '{}')

-- name: detach
-- `attached_at` remains: retention counts from it.
WITH locked AS MATERIALIZED (
    SELECT id FROM sessions
     WHERE (id, attachment) IN (SELECT * FROM unnest(%(sessions)s::bigint[], %(attachments)s::uuid[]))
     ORDER BY id FOR NO KEY UPDATE
)
UPDATE sessions s SET attachment = NULL, attached_process = NULL FROM locked l WHERE s.id = l.id

-- name: positions
-- The positions of sessions in the streams that exist.
SELECT p.*
  FROM ({sessions}) AS k (session_id)
 CROSS JOIN LATERAL (
    SELECT c.session_id, c.stream_id, t.name AS stream, c.segment::text AS segment, c.sequence, c.acknowledged
      FROM session_cursors c JOIN streams t ON t.id = c.stream_id AND t.deleted_at IS NULL
     WHERE c.session_id = k.session_id
     ORDER BY t.name
     LIMIT %(streams_max)s
  ) AS p

-- name: positions_and_heads
-- The positions of a session in some streams, each with the last sequence of the stream.
SELECT c.stream_id, t.name AS stream, c.segment::text AS segment, c.sequence, c.acknowledged, h.sequence AS head,
       c.claimed_sequence IS NOT NULL AS is_claimed
  FROM session_cursors c
  JOIN streams t ON t.id = c.stream_id AND t.deleted_at IS NULL
  JOIN heads h ON h.stream_id = t.id
 WHERE c.session_id = %(session_id)s AND t.name = ANY (%(streams)s::text[])

-- name: settle
-- Stores acknowledged positions (JSON) of a session that is locked, and counts that for the connection that serves it. Claims of
-- pulls on these events end. Of segments that have the same sequences, because some were lost, the last one counts.
WITH given AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(%(positions)s::jsonb)
        AS g (stream_id bigint, sequence bigint, acknowledged bigint[])
), counted AS (
    UPDATE sessions SET acknowledgements = acknowledgements + 1 WHERE id = %(session_id)s
), ended AS (
    DELETE FROM session_claims c USING given g
     WHERE c.session_id = %(session_id)s AND c.stream_id = g.stream_id
       AND (c.sequence <= g.sequence OR c.sequence = ANY (g.acknowledged))
)
UPDATE session_cursors c
   SET segment = CASE WHEN g.sequence = c.sequence THEN c.segment ELSE
                     (SELECT x.uuid FROM segments x
                       WHERE x.stream_id = c.stream_id AND x.first <= g.sequence
                       ORDER BY x.first DESC, x.id DESC LIMIT 1) END,
       sequence = g.sequence, acknowledged = g.acknowledged, saved_at = now()
  FROM given g
 WHERE c.session_id = %(session_id)s AND c.stream_id = g.stream_id

-- name: redeliver
-- Notes events (JSON) that the connection of a session, which is locked, has to deliver again. Without a connection the next one does.
WITH given AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(%(events)s::jsonb) AS g (stream_id bigint, sequences bigint[])
), counted AS (
    UPDATE sessions SET acknowledgements = acknowledgements + 1 WHERE id = %(session_id)s AND attachment IS NOT NULL
    RETURNING id
)
UPDATE session_cursors c
   SET redeliver = ARRAY (SELECT DISTINCT n FROM unnest(c.redeliver || g.sequences) n LIMIT %(events_max)s)
  FROM given g, counted s
 WHERE c.session_id = s.id AND c.stream_id = g.stream_id

-- name: take_redeliveries
-- The events that a connection of a session has to deliver again. They are returned once.
WITH found AS MATERIALIZED (
    SELECT c.stream_id, c.redeliver
      FROM session_cursors c JOIN sessions s ON s.id = c.session_id AND s.attachment = %(attachment)s
     WHERE c.session_id = %(session_id)s AND c.redeliver <> '{}'
       FOR UPDATE OF c
), taken AS (
    UPDATE session_cursors c SET redeliver = '{}' FROM found f
     WHERE c.session_id = %(session_id)s AND c.stream_id = f.stream_id
)
SELECT t.name AS stream, f.redeliver AS sequences FROM found f JOIN streams t ON t.id = f.stream_id

-- name: altered
-- Of sessions, each with the connection that serves it and the number of acknowledgements over HTTP that this one knows: those that
-- have another of either, or do not exist.
SELECT k.id
  FROM json_to_recordset(%(known)s::json) AS k (id bigint, attachment uuid, acknowledgements bigint)
  LEFT JOIN sessions s ON s.id = k.id AND s.attachment = k.attachment AND s.acknowledgements = k.acknowledgements
                      AND s.deleted_at IS NULL
 WHERE s.id IS NULL

-- name: check
-- The settings, as `attach` returns them, of sessions that are still attached to these connections.
SELECT s.id, s.name, s.kind, s.group_id AS session_group, s.disconnected OR COALESCE(g.disconnected, false) AS disconnected,
       COALESCE(g.quality, s.quality) AS quality, COALESCE(g.delivery_order, s.delivery_order) AS delivery_order,
       COALESCE(g.order_options, s.order_options) AS order_options, COALESCE(g.window_events, s.window_events) AS window_events,
       s.attachment, s.acknowledgements, s.deleted_at IS NOT NULL AS deleted
  FROM sessions s LEFT JOIN session_groups g ON g.id = s.group_id AND g.deleted_at IS NULL
 WHERE s.id = ANY (%(sessions)s::bigint[])

-- name: save
-- Saves positions (JSON) of sessions that are still attached to the connections that write them. A lock keeps other connections from
-- attaching, and others from acknowledging, until the commit: who attaches reads what was saved last. Positions of a connection that
-- does not know all acknowledgements over HTTP are not saved. Returns the sessions that are attached, with the number of these.
WITH given AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(%(positions)s::jsonb)
        AS g (session_id bigint, stream_id bigint, attachment uuid, acknowledgements bigint,
              segment uuid, sequence bigint, acknowledged bigint[])
), attached AS MATERIALIZED (
    SELECT s.id, s.acknowledgements FROM sessions s
     WHERE (s.id, s.attachment) IN (SELECT session_id, attachment FROM given)
     ORDER BY s.id FOR SHARE
), saved AS (
    UPDATE session_cursors c
       SET segment = g.segment, sequence = g.sequence, acknowledged = g.acknowledged, saved_at = now()
      FROM given g JOIN attached a ON a.id = g.session_id AND a.acknowledgements = g.acknowledgements
     WHERE c.session_id = g.session_id AND c.stream_id = g.stream_id
)
SELECT id, acknowledgements FROM attached
