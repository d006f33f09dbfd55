import { Box, Button, Group, SegmentedControl, SimpleGrid, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useMemo, useState } from "react";

import { useAddress } from "../../api/address";
import { Bars } from "../../parts/charts/Bars";
import { Lines } from "../../parts/charts/Lines";
import { Card } from "../../parts/Card";
import { type Column, DataTable } from "../../parts/DataTable";
import { Empty } from "../../parts/Empty";
import { Figure } from "../../parts/Figure";
import { Loading } from "../../parts/Loading";
import { Moment } from "../../parts/Moment";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { counted, whole } from "../../parts/text";
import { failed, failuresText, type Point, shareText, type Statistics, statisticsOf, STEPS, timeText } from "./statistics";

const TIME = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short", hour12: false });
const TIME_ZONE = TIME.resolvedOptions().timeZone;
const PERCENTILES = ["p50", "p95", "p99"] as const;

/** The attempts at an endpoint over its last hour or days; the choice is in the address. */
export function StatisticsTab({ zone, id }: { zone: string; id: number }) {
  const [search, setSearch] = useAddress();
  const step = STEPS.find(({ value }) => value === search.get("step")) ?? STEPS[0];
  const { data, error, isError, refetch } = useQuery(statisticsOf(zone, id, step.value));
  return (
    <Stack gap="md">
      <Group justify="space-between" gap="xs">
        <SegmentedControl
          aria-label="Time"
          data={STEPS.map(({ value, label }) => ({ value, label }))}
          value={step.value}
          onChange={(value) => setSearch(() => new URLSearchParams({ step: value }), { replace: true })}
        />
        <Text size="sm" c="dimmed">
          By {step.every}, in the time zone {TIME_ZONE}
        </Text>
      </Group>
      {isError && data === undefined && <ProblemAlert error={error} onRetry={() => void refetch()} />}
      {data === undefined && !isError && <Loading h={420} />}
      {data !== undefined && <Shown statistics={data} />}
    </Stack>
  );
}

function Shown({ statistics }: { statistics: Statistics }) {
  const { step, total, points, pending } = statistics;
  const span = STEPS.find(({ value }) => value === step) ?? STEPS[0];
  const within = span.label.toLowerCase();
  const failures = failed(total);
  const backlog = Math.max(...points.map((point) => point.pending));
  return (
    <>
      <SimpleGrid cols={{ base: 2, md: 4 }} spacing="md">
        <Figure label="Attempts" value={whole(total.attempts)} about={`In the ${within}.`} />
        <Figure label="Delivered" value={shareText(total)} about={total.attempts === 0 ? "No attempts." : failures === 0 ? "None failed." : `${whole(failures)} failed: ${failuresText(total)}`} />
        <Figure
          label="Latency"
          value={total.latency_ms === null ? "–" : timeText(total.latency_ms.p95)}
          about="95 % of the events were acknowledged within it, from their append."
        />
        <Figure label="Pending now" value={counted(pending)} about={`At most ${whole(backlog)} in the ${within}.`} />
      </SimpleGrid>
      {total.attempts + backlog === 0 ? (
        <Empty
          title={`No attempts in the ${within}`}
          about="Attempts, their duration, the latency of events and the backlog appear here about a second after a callback."
        />
      ) : (
        <Plots statistics={statistics} every={span.every} />
      )}
    </>
  );
}

function Plots({ statistics, every }: { statistics: Statistics; every: string }) {
  const { points, step_s: width, total } = statistics;
  const times = useMemo(() => points.map((point) => Date.parse(point.starts_at) / 1000), [points]);
  const attempts = useMemo(() => points.map((point) => point.attempts), [points]);
  const failures = useMemo(() => points.map(failed), [points]);
  const backlog = useMemo(() => points.map((point) => point.pending), [points]);
  const reading = (text: (point: Point) => string) => (at: number) => {
    const point = points[at];
    return point === undefined ? "" : `${TIME.format(Date.parse(point.starts_at))}: ${text(point)}`;
  };
  return (
    <>
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
        <Plot title={`Attempts by ${every}`} about="Of events, with retries">
          <Bars
            times={times}
            width={width}
            values={attempts}
            marked={failures}
            legend={["delivered", "failed"]}
            reading={reading(attemptsText)}
            label={`Attempts by ${every}: ${whole(total.attempts)}, of which ${whole(failed(total))} failed`}
          />
        </Plot>
        <Plot title="Latency of events" about="From append to acknowledgement">
          <Percentiles statistics={statistics} times={times} of="latency_ms" name="Latency of events" reading={reading} />
        </Plot>
        <Plot title={`Pending deliveries by ${every}`} about="The most at a time">
          <Bars
            times={times}
            width={width}
            values={backlog}
            legend={["pending"]}
            reading={reading((point) => `${whole(point.pending)} pending`)}
            label={`Pending deliveries by ${every}: at most ${whole(Math.max(...backlog))}`}
          />
        </Plot>
        <Plot title="Duration of attempts" about="From the request to the response">
          <Percentiles statistics={statistics} times={times} of="duration_ms" name="Duration of attempts" reading={reading} />
        </Plot>
      </SimpleGrid>
      <Numbers points={points} />
    </>
  );
}

function attemptsText(point: Point): string {
  if (point.attempts === 0) return "no attempts";
  return `${whole(point.delivered)} delivered, ${whole(failed(point))} failed`;
}

function Plot({ title, about, children }: { title: string; about: string; children: ReactNode }) {
  return (
    <Card title={title} aside={<Text size="sm" c="dimmed">{about}</Text>}>
      <Box px={8} pb={8}>
        {children}
      </Box>
    </Card>
  );
}

type Times = "latency_ms" | "duration_ms";

interface PercentilesProps {
  statistics: Statistics;
  times: number[];
  of: Times;
  name: string;
  reading: (text: (point: Point) => string) => (at: number) => string;
}

function Percentiles({ statistics: { points, step_s: width, total }, times, of, name, reading }: PercentilesProps) {
  const lines = useMemo(() => PERCENTILES.map((one) => ({ name: one, values: points.map((point) => point[of]?.[one] ?? null) })), [points, of]);
  return (
    <Lines
      times={times}
      width={width}
      lines={lines}
      format={timeText}
      reading={reading((point) => percentilesText(point[of]))}
      label={`${name}: ${percentilesText(total[of])}`}
    />
  );
}

function percentilesText(found: Point[Times]): string {
  if (found === null) return "none";
  return PERCENTILES.map((one) => `${one} ${timeText(found[one])}`).join(", ");
}

function shortText(found: Point[Times]): string {
  return found === null ? "–" : PERCENTILES.map((one) => timeText(found[one])).join(", ");
}

const COLUMNS: Column<Point>[] = [
  { title: "From", cell: ({ starts_at: at }) => <Moment at={at} /> },
  { title: "Attempts", right: true, cell: ({ attempts }) => whole(attempts) },
  { title: "Delivered", right: true, cell: ({ delivered }) => whole(delivered) },
  { title: "Failed", cell: (point) => <span title={failuresText(point)}>{failuresText(point) || "–"}</span>, width: 260 },
  { title: "Latency p50, p95, p99", cell: ({ latency_ms: found }) => shortText(found) },
  { title: "Duration p50, p95, p99", cell: ({ duration_ms: found }) => shortText(found) },
  { title: "Pending", right: true, cell: ({ pending }) => whole(pending) },
];

/** The same as a table, the newest first, without what is empty. */
function Numbers({ points }: { points: readonly Point[] }) {
  const [listed, setListed] = useState(false);
  const shown = useMemo(() => points.filter((point) => point.attempts + point.pending > 0).reverse(), [points]);
  return (
    <Card
      title="As numbers"
      aside={
        <Button size="compact-sm" variant="default" aria-expanded={listed} onClick={() => setListed(!listed)}>
          {listed ? "Hide the numbers" : "Show the numbers"}
        </Button>
      }
    >
      {listed && <DataTable label="Statistics" items={shown} columns={COLUMNS} keyOf={({ starts_at: at }) => at} minWidth={940} />}
    </Card>
  );
}
