import { Box, SegmentedControl, SimpleGrid, Stack, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useSearchParams } from "react-router";

import { useZone } from "../api/zone";
import { Loading } from "../parts/Loading";
import { PageHeader } from "../parts/PageHeader";
import { ProblemAlert } from "../parts/ProblemAlert";
import { History } from "../features/jobs/History";
import { JobCard } from "../features/jobs/JobCard";
import { allJobs } from "../features/jobs/jobs";
import { SparkState } from "../features/jobs/SparkState";
import { JOBS, type Jobs } from "../features/jobs/types";
import { TITLES } from "../features/jobs/words";

/** The Spark jobs over the whole log. */
export function JobsPage() {
  const zone = useZone();
  const { data, error, isError, refetch } = useQuery(allJobs);
  return (
    <>
      <PageHeader title="Jobs" about="Spark jobs over the whole log of the hub, on schedule or on request." />
      <Stack gap="md">
        {isError && data === undefined && <ProblemAlert error={error} onRetry={() => void refetch()} />}
        {data === undefined && !isError && <Loading h={520} />}
        {data !== undefined && <Content zone={zone} jobs={data} />}
      </Stack>
    </>
  );
}

function Content({ zone, jobs: { jobs, spark } }: { zone: string; jobs: Jobs }) {
  const [search, setSearch] = useSearchParams();
  const shown = JOBS.find((job) => job === search.get("history")) ?? JOBS[0];
  return (
    <>
      {spark.problem !== "" && <SparkState spark={spark} />}
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
        {JOBS.map((name) => {
          const job = jobs.find((one) => one.name === name);
          return job && <JobCard key={name} zone={zone} name={name} job={job} />;
        })}
      </SimpleGrid>
      {spark.problem === "" && <SparkState spark={spark} />}
      <Title order={2} mt="sm">
        Runs
      </Title>
      <Box style={{ overflowX: "auto" }}>
        <SegmentedControl
          aria-label="Runs of"
          data={JOBS.map((value) => ({ value, label: TITLES[value] }))}
          value={shown}
          onChange={(history) => setSearch({ history }, { replace: true })}
        />
      </Box>
      <History zone={zone} job={shown} />
    </>
  );
}
