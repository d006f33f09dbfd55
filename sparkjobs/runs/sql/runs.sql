-- Runs of jobs.

-- name: request
INSERT INTO job_runs (job, requested_by, params) VALUES (%(job)s, %(requested_by)s, %(params)s) RETURNING id

-- name: request_retry
-- Retry a scheduled run, within the same night only. Returns no row if the night is over, or a scheduled run is waiting.
INSERT INTO job_runs (job, requested_by, params, attempt, retry_of, not_before)
SELECT r.job, r.requested_by, r.params, r.attempt + 1, first.id, now() + make_interval(secs => %(pause_s)s)
  FROM job_runs r JOIN job_runs first ON first.id = COALESCE(r.retry_of, r.id)
 WHERE r.id = %(id)s AND now() + make_interval(secs => %(pause_s)s) < first.requested_at + make_interval(secs => %(within_s)s)
   AND NOT EXISTS (SELECT FROM job_runs w WHERE w.job = r.job AND w.state = 'waiting' AND w.requested_by = r.requested_by)
RETURNING id

-- name: start
-- Raises a unique violation if another run of the job is running.
UPDATE job_runs
   SET state = 'running', started_at = now(), lease_expires_at = now() + make_interval(secs => %(lease_s)s), phase = 'starting'
 WHERE id = %(id)s AND state = 'waiting'
RETURNING id

-- name: waiting
-- The oldest waiting run of each job that has no running one, in the order of their requests. A time further ahead than the
-- longest pause is ignored, because the clock was set back since.
SELECT id FROM (SELECT DISTINCT ON (job) id, job FROM job_runs
                 WHERE state = 'waiting'
                   AND (not_before IS NULL OR not_before <= now()
                        OR not_before > now() + make_interval(secs => %(pause_s_max)s))
                 ORDER BY job, id) AS first
 WHERE NOT EXISTS (SELECT FROM job_runs r WHERE r.job = first.job AND r.state = 'running')
 ORDER BY id

-- name: has_waiting
-- Whether a run of the job with the same requester is waiting.
SELECT EXISTS (SELECT FROM job_runs WHERE state = 'waiting' AND job = %(job)s AND requested_by = %(requested_by)s)

-- name: bound_leases
-- Shorten leases that end further ahead than a new one would, because the clock was set back since. A live runner renews its
-- lease.
UPDATE job_runs SET lease_expires_at = now() + make_interval(secs => %(lease_s)s)
 WHERE state = 'running' AND lease_expires_at > now() + make_interval(secs => %(lease_s)s)

-- name: lapsed
-- Runs whose lease has expired.
SELECT id FROM job_runs WHERE state = 'running' AND lease_expires_at <= now() ORDER BY id

-- name: heartbeat
-- Returns no row if the run is no longer the caller's.
UPDATE job_runs
   SET lease_expires_at = now() + make_interval(secs => %(lease_s)s), phase = %(phase)s, rows_done = %(rows_done)s,
       stages_done = %(stages_done)s, stages = %(stages)s, tasks_done = %(tasks_done)s, tasks = %(tasks)s,
       engine = %(engine)s
 WHERE id = %(id)s AND state = 'running'
RETURNING cancel_requested_at IS NOT NULL AS is_cancelled

-- name: publish
-- Make a run uncancellable. Returns no row if it was cancelled before, or is no longer the caller's.
UPDATE job_runs SET publishing = true WHERE id = %(id)s AND state = 'running' AND cancel_requested_at IS NULL RETURNING id

-- name: end
-- End a running run; with `lapsed` only if its lease has expired.
UPDATE job_runs
   SET state = %(state)s, ended_at = now(), lease_expires_at = NULL, phase = '', verdict = %(verdict)s, summary = %(summary)s,
       figures = %(figures)s, reason = %(reason)s, detail = %(detail)s, result_bytes = %(result_bytes)s
 WHERE id = %(id)s AND state = 'running' AND (NOT %(lapsed)s OR lease_expires_at <= now())
RETURNING id

-- name: cancel_waiting
UPDATE job_runs
   SET state = 'cancelled', cancel_requested_at = now(), ended_at = now(), reason = 'cancelled', detail = 'The run was cancelled.'
 WHERE id = %(id)s AND state = 'waiting' RETURNING id

-- name: cancel_running
UPDATE job_runs SET cancel_requested_at = COALESCE(cancel_requested_at, now())
 WHERE id = %(id)s AND state = 'running' AND lease_expires_at > now() AND NOT publishing RETURNING id

-- name: delete_old
-- Ended runs beyond the newest ones of the job.
DELETE FROM job_runs
 WHERE state NOT IN ('waiting', 'running') AND job = %(job)s
   AND id <= (SELECT id FROM job_runs WHERE job = %(job)s ORDER BY id DESC OFFSET %(retained)s LIMIT 1)

-- name: drop_results
-- The oldest results of all jobs, until the rest fits the retained size, except the newest of each job. Ordered by id, because
-- the clock may have been set back.
UPDATE job_runs SET result_deleted = true
 WHERE NOT result_deleted AND id IN (
       SELECT id FROM (
              SELECT id, newest, sum(result_bytes) OVER (ORDER BY newest DESC, id DESC) AS with_newer_ones
                FROM (SELECT id, result_bytes, row_number() OVER (PARTITION BY job ORDER BY id DESC) = 1 AS newest
                        FROM job_runs WHERE state = 'completed' AND NOT result_deleted) AS there) AS summed
        WHERE NOT newest AND with_newer_ones > %(bytes_max)s)
RETURNING job, id

-- name: retained
-- The runs of a job, and whether their results are retained.
SELECT id, state = 'completed' AND NOT result_deleted AS has_result FROM job_runs WHERE job = %(job)s

-- name: runs
-- A run whose lease has expired (`lost`) appears as interrupted, before any process has recorded that.
SELECT id, job, CASE WHEN lost THEN %(lost_state)s ELSE state END AS state, requested_by, requested_at, attempt, retry_of,
       not_before, started_at, ended_at, CASE WHEN lost THEN ''
            WHEN state = 'running' AND cancel_requested_at IS NOT NULL THEN 'being cancelled' ELSE phase END AS phase,
       rows_done, stages_done, stages, tasks_done, tasks, params, engine, verdict, summary, figures,
       CASE WHEN lost THEN %(lost_reason)s ELSE reason END AS reason,
       CASE WHEN lost THEN %(lost_detail)s ELSE detail END AS detail, result_bytes, result_deleted
  FROM job_runs, LATERAL (SELECT state = 'running' AND lease_expires_at <= now() AS lost) AS lease
 WHERE (%(ids)s::bigint[] IS NULL OR id = ANY (%(ids)s)) AND (%(job)s::text IS NULL OR job = %(job)s)
   AND (%(before)s::bigint IS NULL OR id < %(before)s)
 ORDER BY id DESC LIMIT %(count)s

-- name: newest
-- Each job's running run, last ended run and waiting retry.
SELECT max(id)
  FROM (SELECT id, job, CASE WHEN state = 'running' THEN lease_expires_at > now() END AS running, state = 'waiting' AS waiting
          FROM job_runs WHERE state <> 'waiting' OR retry_of IS NOT NULL) AS runs
 GROUP BY job, COALESCE(running, false), waiting
