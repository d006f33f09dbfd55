-- Runs of jobs: asked for, under way, and over. A run is its own lease: who may do the job is the one row that is `running`,
-- and every write of a runner asks that its row still is.
CREATE TABLE job_runs (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job             text NOT NULL,
    state           text NOT NULL DEFAULT 'waiting'
                    CHECK (state IN ('waiting', 'running', 'completed', 'failed', 'cancelled', 'interrupted')),
    asked_by        text NOT NULL,               -- timetable, command, or an operator's name
    asked_at        timestamptz NOT NULL DEFAULT now(),
    params          json NOT NULL,               -- as checked, with the ids of what they name
    begun_at        timestamptz,
    lease_until     timestamptz,                 -- of one that is running: when its runner counts as gone
    cancel_asked_at timestamptz,
    ended_at        timestamptz,
    phase           text NOT NULL DEFAULT '',    -- what it is at, in words
    rows_done       bigint NOT NULL DEFAULT 0,   -- of an export
    stages_done     integer NOT NULL DEFAULT 0,  -- of Spark, as far as it knows them by now ...
    stages          integer NOT NULL DEFAULT 0,
    tasks_done      integer NOT NULL DEFAULT 0,
    tasks           integer NOT NULL DEFAULT 0,
    engine          text NOT NULL DEFAULT '',    -- what did it: spark local[2], local builder
    verdict         text NOT NULL DEFAULT '',    -- of a job that judges: ok, problems
    summary         text NOT NULL DEFAULT '',    -- what came of it, in a sentence
    figures         json NOT NULL DEFAULT '{}',
    reason          text NOT NULL DEFAULT '',    -- why it did not end well, an error's code ...
    detail          text NOT NULL DEFAULT '',    -- ... and in words
    publishing      boolean NOT NULL DEFAULT false,  -- what it does from here on is not taken back, so nobody cancels it
    result_bytes    bigint NOT NULL DEFAULT 0,   -- of the files that it left, also when they are gone
    result_gone     boolean NOT NULL DEFAULT false   -- they had to make room for newer ones
) WITH (fillfactor = 60);
CREATE UNIQUE INDEX job_runs_running ON job_runs (job) WHERE state = 'running';
CREATE INDEX job_runs_waiting ON job_runs (id) WHERE state = 'waiting';
CREATE INDEX job_runs_history ON job_runs (job, id);
