-- Runs of jobs.

-- name: ask
INSERT INTO job_runs (job, asked_by, params) VALUES (%(job)s, %(asked_by)s, %(params)s) RETURNING id

-- name: ask_running
-- By whoever runs it at once. Raises a unique violation if another run of the job is under way.
INSERT INTO job_runs (job, asked_by, params, state, begun_at, lease_until, phase)
VALUES (%(job)s, %(asked_by)s, %(params)s, 'running', now(), now() + make_interval(secs => %(lease_s)s), 'beginning')
RETURNING id

-- name: begin
-- Raises a unique violation if another run of the job is under way.
UPDATE job_runs
   SET state = 'running', begun_at = now(), lease_until = now() + make_interval(secs => %(lease_s)s), phase = 'beginning'
 WHERE id = %(id)s AND state = 'waiting'
RETURNING id

-- name: waiting
-- The oldest run of each job that nobody is at, in the order of asking.
SELECT id FROM (SELECT DISTINCT ON (job) id, job FROM job_runs WHERE state = 'waiting' ORDER BY job, id) AS first
 WHERE NOT EXISTS (SELECT FROM job_runs r WHERE r.job = first.job AND r.state = 'running')
 ORDER BY id

-- name: count_waiting
SELECT count(*), count(*) FILTER (WHERE job = %(job)s) FROM job_runs WHERE state = 'waiting'

-- name: lapsed
-- Whose runner has gone without a word.
SELECT id FROM job_runs WHERE state = 'running' AND lease_until <= now() ORDER BY id

-- name: beat
-- The runner is there. Nothing is returned if the run is not its own any more.
UPDATE job_runs
   SET lease_until = now() + make_interval(secs => %(lease_s)s), phase = %(phase)s, rows_done = %(rows_done)s,
       stages_done = %(stages_done)s, stages = %(stages)s, tasks_done = %(tasks_done)s, tasks = %(tasks)s,
       engine = %(engine)s
 WHERE id = %(id)s AND state = 'running'
RETURNING cancel_asked_at IS NOT NULL

-- name: publish
-- From here on nobody cancels the run. Nothing is returned if it was cancelled before, or is not the caller's any more.
UPDATE job_runs SET publishing = true WHERE id = %(id)s AND state = 'running' AND cancel_asked_at IS NULL RETURNING id

-- name: end
-- Of one that is running; `lapsed`: only if nobody has its lease any more.
UPDATE job_runs
   SET state = %(state)s, ended_at = now(), lease_until = NULL, phase = '', verdict = %(verdict)s, summary = %(summary)s,
       figures = %(figures)s, reason = %(reason)s, detail = %(detail)s, result_bytes = %(result_bytes)s
 WHERE id = %(id)s AND state = 'running' AND (NOT %(lapsed)s OR lease_until <= now())
RETURNING id

-- name: cancel_waiting
UPDATE job_runs
   SET state = 'cancelled', cancel_asked_at = now(), ended_at = now(), reason = 'cancelled', detail = 'It was cancelled.'
 WHERE id = %(id)s AND state = 'waiting' RETURNING id

-- name: cancel_running
UPDATE job_runs SET cancel_asked_at = COALESCE(cancel_asked_at, now())
 WHERE id = %(id)s AND state = 'running' AND lease_until > now() AND NOT publishing RETURNING id

-- name: forget
-- Runs that are over, but the newest of the job.
DELETE FROM job_runs
 WHERE state NOT IN ('waiting', 'running') AND job = %(job)s
   AND id <= (SELECT id FROM job_runs WHERE job = %(job)s ORDER BY id DESC OFFSET %(kept)s LIMIT 1)

-- name: drop_results
-- The oldest results of all jobs, until the others have as many bytes as may be kept; never the newest of a job.
UPDATE job_runs SET result_gone = true
 WHERE NOT result_gone AND id IN (
       SELECT id FROM (
              SELECT id, newest, sum(result_bytes) OVER (ORDER BY newest DESC, ended_at DESC, id DESC) AS with_newer_ones
                FROM (SELECT id, ended_at, result_bytes,
                             row_number() OVER (PARTITION BY job ORDER BY ended_at DESC, id DESC) = 1 AS newest
                        FROM job_runs WHERE state = 'completed' AND NOT result_gone) AS there) AS summed
        WHERE NOT newest AND with_newer_ones > %(bytes_max)s)
RETURNING job, id

-- name: kept
-- The runs of a job, and whether their results are kept.
SELECT id, state = 'completed' AND NOT result_gone FROM job_runs WHERE job = %(job)s

-- name: runs
-- A run whose lease has run out (`gone`) is shown as what it will be noted as.
SELECT id, job, CASE WHEN gone THEN %(gone_state)s ELSE state END, asked_by,
       (extract(epoch FROM asked_at) * 1000000)::bigint, (extract(epoch FROM begun_at) * 1000000)::bigint,
       (extract(epoch FROM ended_at) * 1000000)::bigint,
       CASE WHEN gone THEN '' WHEN state = 'running' AND cancel_asked_at IS NOT NULL THEN 'being cancelled' ELSE phase END,
       rows_done, stages_done, stages, tasks_done, tasks, params::text, engine, verdict, summary, figures::text,
       CASE WHEN gone THEN %(gone_reason)s ELSE reason END, CASE WHEN gone THEN %(gone_detail)s ELSE detail END,
       result_bytes, result_gone
  FROM job_runs, LATERAL (SELECT state = 'running' AND lease_until <= now() AS gone) AS lease
 WHERE (%(id)s::bigint IS NULL OR id = %(id)s) AND (%(job)s::text IS NULL OR job = %(job)s)
   AND (%(before)s::bigint IS NULL OR id < %(before)s)
 ORDER BY id DESC LIMIT %(count)s

-- name: newest
-- Of each job the run that is under way, and the last one that is over.
SELECT max(id)
  FROM (SELECT id, job, state = 'running' AND lease_until > now() AS running FROM job_runs WHERE state <> 'waiting') AS begun
 GROUP BY job, running
