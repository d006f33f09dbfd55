"""The text with which statements mark the lanes of the deliveries that they write, those in their
`written`. Lanes are marked in order, so that no two writers wait for each other. Plain module.
"""

_MARK = """INSERT INTO lanes AS l (endpoint_id, stream_id, token, expires_at, due_at, touched)
    SELECT DISTINCT endpoint_id, COALESCE(lane, stream_id), NULL::uuid, 'epoch'::timestamptz,
           now(), true
      FROM written WHERE ordered
     ORDER BY 1, 2
        ON CONFLICT (endpoint_id, stream_id) DO UPDATE
       SET touched = true, due_at = {due_at}"""
FILLED = {
    # new deliveries, after the others: a lane that is marked and has a time stays as it is
    "mark_new": _MARK.format(
        due_at="COALESCE(l.due_at, excluded.due_at) WHERE NOT l.touched OR l.due_at IS NULL"
    ),
    # deliveries that are sent again, before the others: the lane is due, unless a worker holds it
    "mark_again": _MARK.format(
        due_at="CASE WHEN l.expires_at > now() THEN l.due_at ELSE now() END"
    ),
}
