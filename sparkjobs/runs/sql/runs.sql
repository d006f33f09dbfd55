-- Runs of jobs.

-- name: ask
INSERT INTO job_runs (job, requested_by, params) VALUES (%(job)s, %(requested_by)s, %(params)s) RETURNING id

-- name: ask_again
-- Repeat a run of the timetable, the same night only. Nothing is returned if the night is over, or one of the timetable waits.
INSERT INTO job_runs (job, requested_by, params, attempt, repeats, not_before)
SELECT r.job, r.requested_by, r.params, r.attempt + 1, first.id, now() + make_interval(secs => %(pause_s)s)
  FROM job_runs r JOIN job_runs first ON first.id = COALESCE(r.repeats, r.id)
 WHERE r.id = %(id)s AND now() + make_interval(secs => %(pause_s)s) < first.requested_at + make_interval(secs => %(within_s)s)
   AND NOT EXISTS (SELECT FROM job_runs w WHERE w.job = r.job AND w.state = 'waiting' AND w.requested_by = r.requested_by)
RETURNING id

-- name: begin
-- Raises a unique violation if another run of the job is under way.
UPDATE job_runs
   SET state = 'running', started_at = now(), lease_expires_at = now() + make_interval(secs => %(lease_s)s), phase = 'beginning'
 WHERE id = %(id)s AND state = 'waiting'
RETURNING id

-- name: waiting
-- The oldest run of each job that nobody is at, in the order of asking. A time further ahead than the longest pause is not
-- believed: the clock was set back since.
SELECT id FROM (SELECT DISTINCT ON (job) id, job FROM job_runs
                 WHERE state = 'waiting'
                   AND (not_before IS NULL OR not_before <= now()
                        OR not_before > now() + make_interval(secs => %(pause_s_max)s))
                 ORDER BY job, id) AS first
 WHERE NOT EXISTS (SELECT FROM job_runs r WHERE r.job = first.job AND r.state = 'running')
 ORDER BY id

-- name: has_waiting
-- Whether a run of the job waits that the same one asked for.
SELECT EXISTS (SELECT FROM job_runs WHERE state = 'waiting' AND job = %(job)s AND requested_by = %(requested_by)s)

-- name: bound_leases
-- A lease that ends further ahead than a new one is not believed, because the clock was set back since: it counts from now
-- on. A runner that is there prolongs it.
UPDATE job_runs SET lease_expires_at = now() + make_interval(secs => %(lease_s)s)
 WHERE state = 'running' AND lease_expires_at > now() + make_interval(secs => %(lease_s)s)

-- name: lapsed
-- Whose runner has gone without a word.
SELECT id FROM job_runs WHERE state = 'running' AND lease_expires_at <= now() ORDER BY id

-- name: beat
-- The runner is there. Nothing is returned if the run is not its own any more.
UPDATE job_runs
   SET lease_expires_at = now() + make_interval(secs => %(lease_s)s), phase = %(phase)s, rows_done = %(rows_done)s,
       stages_done = %(stages_done)s, stages = %(stages)s, tasks_done = %(tasks_done)s, tasks = %(tasks)s,
       engine = %(engine)s
 WHERE id = %(id)s AND state = 'running'
RETURNING cancel_requested_at IS NOT NULL AS is_cancelled

-- name: publish
-- From here on nobody cancels the run. Nothing is returned if it was cancelled before, or is not the caller's any more.
UPDATE job_runs SET publishing = true WHERE id = %(id)s AND state = 'running' AND cancel_requested_at IS NULL RETURNING id

-- name: end
-- Of one that is running; `lapsed`: only if nobody has its lease any more.
UPDATE job_runs
   SET state = %(state)s, ended_at = now(), lease_expires_at = NULL, phase = '', verdict = %(verdict)s, summary = %(summary)s,
       figures = %(figures)s, reason = %(reason)s, detail = %(detail)s, result_bytes = %(result_bytes)s
 WHERE id = %(id)s AND state = 'running' AND (NOT %(lapsed)s OR lease_expires_at <= now())
RETURNING id

-- name: cancel_waiting
UPDATE job_runs
   SET state = 'cancelled', cancel_requested_at = now(), ended_at = now(), reason = 'cancelled', detail = 'It was cancelled.'
 WHERE id = %(id)s AND state = 'waiting' RETURNING id

-- name: cancel_running
UPDATE job_runs SET cancel_requested_at = COALESCE(cancel_requested_at, now())
 WHERE id = %(id)s AND state = 'running' AND lease_expires_at > now() AND NOT publishing RETURNING id

-- name: forget
-- Runs that are over, but the newest of the job.
DELETE FROM job_runs
 WHERE state NOT IN ('waiting', 'running') AND job = %(job)s
   AND id <= (SELECT id FROM job_runs WHERE job = %(job)s ORDER BY id DESC OFFSET %(kept)s LIMIT 1)

-- name: drop_results
-- The oldest results of all jobs, until the others have as many bytes as may be kept; never the newest of a job. By number,
-- whatever the clock said.
UPDATE job_runs SET result_gone = true
 WHERE NOT result_gone AND id IN (
       SELECT id FROM (
              SELECT id, newest, sum(result_bytes) OVER (ORDER BY newest DESC, id DESC) AS with_newer_ones
                FROM (SELECT id, result_bytes, row_number() OVER (PARTITION BY job ORDER BY id DESC) = 1 AS newest
                        FROM job_runs WHERE state = 'completed' AND NOT result_gone) AS there) AS summed
        WHERE NOT newest AND with_newer_ones > %(bytes_max)s)
RETURNING job, id

-- name: kept
-- The runs of a job, and whether their results are kept.
SELECT id, state = 'completed' AND NOT result_gone AS has_result FROM job_runs WHERE job = %(job)s

-- name: runs
-- As they are shown: one whose lease has run out (`gone`) as what it will be noted as.
SELECT id, job, CASE WHEN gone THEN %(gone_state)s ELSE state END AS state, requested_by, requested_at, attempt, repeats,
       not_before, started_at, ended_at, CASE WHEN gone THEN ''
            WHEN state = 'running' AND cancel_requested_at IS NOT NULL THEN 'being cancelled' ELSE phase END AS phase,
       rows_done, stages_done, stages, tasks_done, tasks, params, engine, verdict, summary, figures,
       CASE WHEN gone THEN %(gone_reason)s ELSE reason END AS reason,
       CASE WHEN gone THEN %(gone_detail)s ELSE detail END AS detail, result_bytes, result_gone
  FROM job_runs, LATERAL (SELECT state = 'running' AND lease_expires_at <= now() AS gone) AS lease
 WHERE (%(ids)s::bigint[] IS NULL OR id = ANY (%(ids)s)) AND (%(job)s::text IS NULL OR job = %(job)s)
   AND (%(before)s::bigint IS NULL OR id < %(before)s)
 ORDER BY id DESC LIMIT %(count)s

-- name: newest
-- Of each job the run that is under way, the last one that is over, and the repeat that waits.
SELECT max(id)
  FROM (SELECT id, job, CASE WHEN state = 'running' THEN lease_expires_at > now() END AS running, state = 'waiting' AS waiting
          FROM job_runs WHERE state <> 'waiting' OR repeats IS NOT NULL) AS runs
 GROUP BY job, COALESCE(running, false), waiting
