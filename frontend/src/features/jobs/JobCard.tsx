import { Anchor, Button, Group, Stack, Text } from "@mantine/core";
import { IconPlayerPlay } from "@tabler/icons-react";
import { Link, useNavigate } from "react-router";

import { pathIn } from "../../api/zone";
import { Card } from "../../parts/Card";
import { Facts } from "../../parts/Facts";
import { May } from "../../parts/May";
import { Moment } from "../../parts/Moment";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { CancelRun } from "./CancelRun";
import { isGoing, useStart } from "./jobs";
import { RunProgress } from "./RunProgress";
import { RunState } from "./RunState";
import type { Job, JobName, Run } from "./types";
import { TITLES, titleOf } from "./words";

// what a job's form sets; jobs not in NEED_FORMS also run without it, as on schedule
const FORMS: Record<JobName, string> = {
  audit: "Choose the scope",
  backtest: "Write a filter",
  match_index: "Choose a stream",
  retention: "Propose policies",
};
const NEED_FORMS: readonly JobName[] = ["backtest", "match_index"];

/** A job: its purpose, schedule, last run, and progress. */
export function JobCard({ zone, name, job }: { zone: string; name: JobName; job: Job }) {
  const { about, schedule, next_at: next, running, last, retry } = job;
  const start = useStart(name);
  const navigate = useNavigate();
  const own = pathIn(zone, `jobs/${name}`);
  return (
    <Card title={TITLES[name]} aside={<Anchor component={Link} to={own} size="sm">{FORMS[name]}</Anchor>}>
      <Stack gap="sm" p="md" pt={0}>
        <Text size="sm" c="dimmed">
          {about}
        </Text>
        <Facts
          facts={[
            ["Schedule", schedule ?? "on request"],
            ...(next === null ? [] : [["Next", <Moment key="next" at={next} />] as const]),
            ...(retry === null ? [] : [["Retry", <Retry key="retry" zone={zone} run={retry} />] as const]),
            ["Last run", last === null ? "none" : <Last key="last" zone={zone} run={last} />],
          ]}
        />
        {isGoing(running) && (
          <>
            <Anchor component={Link} to={runAt(zone, running)} size="sm">
              {titleOf(running)} is {running.state}
            </Anchor>
            <RunProgress run={running} />
          </>
        )}
        {start.isError && <ProblemAlert error={start.error} />}
        <May>
          <Group gap="xs">
            {NEED_FORMS.includes(name) ? (
              <Button component={Link} to={own} leftSection={<IconPlayerPlay size={16} />} variant="default" aria-label={`Run …: ${TITLES[name]}`}>
                Run …
              </Button>
            ) : (
              <Button
                leftSection={<IconPlayerPlay size={16} />}
                variant="default"
                aria-label={`Run now: ${TITLES[name]}`}
                loading={start.isPending}
                disabled={isGoing(running)}
                onClick={() => start.mutate({}, { onSuccess: (run) => void navigate(runAt(zone, run)) })}
              >
                Run now
              </Button>
            )}
            {isGoing(running) && <CancelRun run={running} />}
          </Group>
        </May>
      </Stack>
    </Card>
  );
}

/** The waiting retry of a failed scheduled run. */
function Retry({ zone, run }: { zone: string; run: Run }) {
  return (
    <Text span size="sm">
      <Anchor component={Link} to={runAt(zone, run)} size="sm">
        {titleOf(run)}
      </Anchor>
      , attempt {run.attempt}
      {run.not_before !== null && (
        <>
          , not before <Moment at={run.not_before} />
        </>
      )}
    </Text>
  );
}

function Last({ zone, run }: { zone: string; run: Run }) {
  const at = run.ended_at ?? run.requested_at;
  return (
    <Stack gap={2}>
      <Group gap={8}>
        <RunState run={run} />
        <Anchor component={Link} to={runAt(zone, run)} size="sm">
          {titleOf(run)}
        </Anchor>
        <Text span size="sm" c="dimmed">
          <Moment at={at} />
        </Text>
      </Group>
      {(run.summary || run.detail) !== "" && <Text size="sm">{run.summary || run.detail}</Text>}
    </Stack>
  );
}

function runAt(zone: string, { job, id }: Run): string {
  return pathIn(zone, `jobs/${job}/${id}`);
}
