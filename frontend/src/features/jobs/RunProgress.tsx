import { Progress, Stack, Text } from "@mantine/core";

import { capital, whole } from "../../parts/text";
import type { Run } from "./types";

const PATIENCE_MS = 30_000; // workers poll every few seconds

/** The progress of a waiting or running run. */
export function RunProgress({ run }: { run: Run }) {
  return (
    <Stack gap={6} maw={640} role="status" aria-label="Progress">
      {run.state === "waiting" ? <Words text={waiting(run)} /> : <Running run={run} />}
    </Stack>
  );
}

function Running({ run: { phase, rows_done: rows, stages_done: ended, stages, tasks_done: done, tasks } }: { run: Run }) {
  const share = tasks > 0 ? Math.round((100 * done) / tasks) : undefined;
  const counts = [
    ...(rows > 0 ? [`${whole(rows)} rows`] : []),
    ...(stages > 0 ? [`${whole(ended)} of ${whole(stages)} stages`] : []),
    ...(tasks > 0 ? [`${whole(done)} of ${whole(tasks)} tasks`] : []),
  ];
  return (
    <>
      <Text size="sm" fw={550}>
        {phase === "" ? "Starting" : capital(phase)}
      </Text>
      <Progress value={share ?? 100} animated={share === undefined} aria-label="Progress of the run" />
      <Words text={counts.length === 0 ? "Counts start with the first stage." : counts.join(" · ")} />
    </>
  );
}

function Words({ text }: { text: string }) {
  return (
    <Text size="sm" c="dimmed" className="number">
      {text}
    </Text>
  );
}

function waiting({ requested_at: at, not_before: from }: Run): string {
  if (from !== null && Date.now() < Date.parse(from)) return "Waiting for its time: a retry starts some minutes after the previous attempt.";
  const patient = Date.now() - Date.parse(at) < PATIENCE_MS;
  return patient ? "A worker starts the run within seconds." : "No worker has started the run. Another run of this job may be running, or no worker is.";
}
