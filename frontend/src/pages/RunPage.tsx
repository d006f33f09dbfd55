import { Alert, Button, Group, Stack, Text } from "@mantine/core";
import { IconAlertCircle, IconFileText } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { useParams } from "react-router";

import { numberIn } from "../api/address";
import { pathIn, useZone } from "../api/zone";
import { Missing } from "../parts/Missing";
import { Card } from "../parts/Card";
import { Loading } from "../parts/Loading";
import { Moment } from "../parts/Moment";
import { PageHeader } from "../parts/PageHeader";
import { ProblemAlert } from "../parts/ProblemAlert";
import { capital } from "../parts/text";
import { CancelRun } from "../features/jobs/CancelRun";
import { fileAt, isGoing, oneRun } from "../features/jobs/jobs";
import { RunAbout } from "../features/jobs/RunAbout";
import { RunFiles } from "../features/jobs/RunFiles";
import { RunLog } from "../features/jobs/RunLog";
import { RunProgress } from "../features/jobs/RunProgress";
import { RunState } from "../features/jobs/RunState";
import { JOBS, type JobName, type OneRun, type ResultProps } from "../features/jobs/types";
import { taken, TITLES } from "../features/jobs/words";

// loaded with their charts on demand
const RESULTS = {
  audit: lazy(async () => ({ default: (await import("../features/audit/AuditResult")).AuditResult })),
  backtest: lazy(async () => ({ default: (await import("../features/backtest/BacktestResult")).BacktestResult })),
  match_index: lazy(async () => ({ default: (await import("../features/jobs/PlainResult")).PlainResult })),
  retention: lazy(async () => ({ default: (await import("../features/retention/PlanResult")).PlanResult })),
};

const REPORT = "report.html";

/** One run of a job: its progress or its result. */
export function RunPage() {
  const zone = useZone();
  const { job: name = "", run: number = "" } = useParams();
  const job = JOBS.find((one) => one === name);
  const id = numberIn(number);
  return job === undefined || id === undefined ? <Missing /> : <Found key={`${job} ${id}`} zone={zone} job={job} id={id} />;
}

function Found({ zone, job, id }: { zone: string; job: JobName; id: number }) {
  const { data, error, isError, refetch } = useQuery(oneRun(job, id));
  return (
    <>
      <PageHeader
        title={`${TITLES[job]} ${id}`}
        back={{ to: pathIn(zone, `jobs/${job}`), label: TITLES[job] }}
        about={data === undefined ? "…" : <About run={data} />}
        badges={data !== undefined && <RunState run={data} />}
      >
        {data !== undefined && <Actions run={data} />}
      </PageHeader>
      <Stack gap="md">
        {isError && data === undefined && <ProblemAlert error={error} onRetry={() => void refetch()} />}
        {data === undefined && !isError && <Loading h={420} />}
        {data !== undefined && <Body zone={zone} job={job} run={data} />}
      </Stack>
    </>
  );
}

function Body({ zone, job, run }: ResultProps & { job: JobName }) {
  const Result = RESULTS[job];
  return (
    <>
      {isGoing(run) && (
        <Card title="Progress">
          <div style={{ padding: "0 16px 16px" }}>
            <RunProgress run={run} />
          </div>
        </Card>
      )}
      <NoResult run={run} />
      {run.state === "completed" && (run.files.length > 0 || Object.keys(run.details).length > 0) && (
        <Suspense fallback={<Loading h={420} />}>
          <Result zone={zone} run={run} />
        </Suspense>
      )}
      <RunAbout run={run} />
      {run.files.length > 0 && <RunFiles run={run} />}
      <RunLog key={run.state} run={run} />
    </>
  );
}

/** The reason why a finished run has no result. */
function NoResult({ run: { state, reason, detail, summary, details, files } }: { run: OneRun }) {
  if (state === "completed" && files.length === 0 && Object.keys(details).length === 0) {
    return <Text size="sm">{summary} The result was deleted, or is on another machine.</Text>;
  }
  if (state === "cancelled") return <Text size="sm">The run was cancelled. Only its log remains.</Text>;
  if (state !== "failed" && state !== "interrupted") return null;
  const failed = state === "failed";
  return (
    <Alert color={failed ? "red" : "yellow"} variant="light" icon={<IconAlertCircle />} role="alert" title={failed ? "The run failed" : "The run was interrupted"}>
      <Text size="sm">
        {detail} {!failed && "It left no result; run the job again."}
      </Text>
      {reason !== "" && (
        <Text size="xs" c="dimmed" className="mono">
          {reason}
        </Text>
      )}
    </Alert>
  );
}

function About({ run }: { run: OneRun }) {
  const { requested_by: by, requested_at: at, engine } = run;
  const time = taken(run);
  return (
    <>
      Requested by {by}, <Moment at={at} />
      {run.ended_at !== null && time !== undefined && `. It took ${time}`}
      {engine !== "" && `. ${capital(engine)}`}
      {run.retry_of !== null && `. Attempt ${run.attempt}, a retry of run ${run.retry_of}`}
      {run.state === "waiting" && run.not_before !== null && (
        <>
          . Not before <Moment at={run.not_before} />
        </>
      )}
      .
    </>
  );
}

function Actions({ run }: { run: OneRun }) {
  return (
    <Group gap="xs">
      {isGoing(run) && <CancelRun run={run} />}
      {run.files.some(({ name }) => name === REPORT) && (
        <Button component="a" href={fileAt(run, REPORT)} target="_blank" rel="noreferrer" variant="default" leftSection={<IconFileText size={16} />}>
          Report
        </Button>
      )}
    </Group>
  );
}
