import { SimpleGrid, Stack } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";

import { useZone } from "../api/zone";
import { Chart } from "../parts/charts/Chart";
import { Card } from "../parts/Card";
import { Loading } from "../parts/Loading";
import { PageHeader } from "../parts/PageHeader";
import { ProblemAlert } from "../parts/ProblemAlert";
import { rate, whole } from "../parts/text";
import { Boot } from "../features/overview/Boot";
import { Degraded } from "../features/overview/Degraded";
import { FirstSteps } from "../features/overview/FirstSteps";
import { Figures } from "../features/overview/Figures";
import { Health } from "../features/overview/Health";
import { readingsOf } from "../features/overview/readings";
import { Release } from "../features/overview/Release";
import { DeleteZone, ZoneDeletionBanner } from "../features/overview/ZoneDeletion";
import { StreamTable } from "../features/overview/StreamTable";

export function OverviewPage() {
  const zone = useZone();
  const queries = useQueryClient();
  const { data, error, isError, refetch } = useQuery(readingsOf(zone, queries));
  const times = data?.history.map((sample) => sample.at) ?? [];
  const rates = data?.history.map((sample) => sample.rate) ?? [];
  const pending = data?.history.map((sample) => sample.pending) ?? [];

  return (
    <>
      <PageHeader title="Overview" about={`Events, matching and pending deliveries of the zone ${zone}.`}>
        {data !== undefined && <Health overview={data.now} />}
        <DeleteZone zone={zone} />
      </PageHeader>
      <ZoneDeletionBanner zone={zone} />
      <Stack gap="md">
        {isError && data === undefined && <ProblemAlert error={error} onRetry={() => void refetch()} />}
        {data === undefined && !isError && <Loading h={420} />}
        {data !== undefined && (
          <>
            <Degraded health={data.now.health} />
            <Figures overview={data.now} rate={rates.at(-1) ?? null} />
            <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
              <Card title="Events appended per second">
                <Chart times={times} values={rates} format={rate} label="Events appended per second" />
              </Card>
              <Card title="Pending deliveries over time">
                <Chart times={times} values={pending} format={whole} label="Pending deliveries" />
              </Card>
            </SimpleGrid>
            <StreamTable zone={zone} readings={data} />
            <Boot zone={zone} />
            {data.now.streams.length < 2 && <FirstSteps />}
            <Release version={data.now.version} />
          </>
        )}
      </Stack>
    </>
  );
}
