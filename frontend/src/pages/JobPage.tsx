import { Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ComponentType } from "react";
import { useParams } from "react-router";

import { pathIn, useZone } from "../api/zone";
import { Missing } from "../parts/Missing";
import { AuditForm } from "../features/audit/AuditForm";
import { BacktestForm } from "../features/backtest/BacktestForm";
import { PageHeader } from "../parts/PageHeader";
import { RetentionForm } from "../features/retention/RetentionForm";
import { History } from "../features/jobs/History";
import { IndexForm } from "../features/jobs/IndexForm";
import { allJobs } from "../features/jobs/jobs";
import { JOBS, type JobName } from "../features/jobs/types";
import { TITLES } from "../features/jobs/words";

const FORMS: Record<JobName, ComponentType<{ zone: string }>> = {
  audit: AuditForm,
  backtest: BacktestForm,
  match_index: IndexForm,
  retention: RetentionForm,
};

/** One job: a form to run it, and its runs. */
export function JobPage() {
  const zone = useZone();
  const { job: name } = useParams();
  const job = JOBS.find((one) => one === name);
  const found = useQuery(allJobs).data;
  if (job === undefined) return <Missing />;
  const Form = FORMS[job];
  const problem = found?.spark.problem ?? "";
  return (
    <>
      <PageHeader title={TITLES[job]} back={{ to: pathIn(zone, "jobs"), label: "Jobs" }} about={found?.jobs.find(({ name }) => name === job)?.about ?? "…"} />
      <Stack gap="md">
        {problem !== "" && <Text size="sm">Spark is not ready: {problem}</Text>}
        <Form key={job} zone={zone} />
        <Title order={2} mt="sm">
          Runs
        </Title>
        <History zone={zone} job={job} />
      </Stack>
    </>
  );
}
