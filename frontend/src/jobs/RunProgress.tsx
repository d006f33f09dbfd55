import { Progress, Stack, Text } from "@mantine/core";

import { capital, whole } from "../parts/text";
import type { Run } from "./types";

const PATIENCE_MS = 30_000; // workers look every few seconds

/** How far a run is that is not over. */
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
      <Progress value={share ?? 100} animated={share === undefined} aria-label="How far the run is" />
      <Words text={counts.length === 0 ? "Counts come with the first stage." : counts.join(" · ")} />
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
  if (from !== null && Date.now() < Date.parse(from)) return "It waits for its time: a repeat begins some minutes after the attempt before.";
  const patient = Date.now() - Date.parse(at) < PATIENCE_MS;
  return patient ? "A worker begins within seconds." : "No worker has begun yet. Another run of this job may be under way, or no worker runs.";
}
