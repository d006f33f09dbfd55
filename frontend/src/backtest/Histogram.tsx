import { Button, Stack, Text } from "@mantine/core";
import { useMemo, useState } from "react";
import { useNavigate } from "react-router";

import { Bars } from "../charts/Bars";
import { Card } from "../parts/Card";
import { type Column, DataTable } from "../parts/DataTable";
import { Moment } from "../parts/Moment";
import { duration, whole } from "../parts/text";
import type { BacktestDetails } from "./backtest";

const TIME = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", hour12: false });

interface Props {
  found: BacktestDetails;
  to: (range: [Date, Date]) => string; // the form with that range
}

interface Span {
  from: Date;
  count: number;
}

/** When it would have matched; a span that is chosen leads to the form with its time filled in. */
export function Histogram({ found: { hours, buckets_s: width, count }, to }: Props) {
  const navigate = useNavigate();
  const [listed, setListed] = useState(false);
  const [times, values] = useMemo(() => [hours.map(([us]) => us / 1e6), hours.map(([, own]) => own)], [hours]);
  const choose = (seconds: number) => void navigate(to([new Date(seconds * 1000), new Date((seconds + width) * 1000)]));
  const columns: Column<Span>[] = [
    { title: "From", cell: ({ from }) => <Moment at={from.toISOString()} /> },
    { title: "Matched", right: true, cell: (span) => whole(span.count) },
  ];
  const toggle = (
    <Button size="compact-sm" variant="default" aria-expanded={listed} onClick={() => setListed(!listed)}>
      {listed ? "Hide the numbers" : "As numbers"}
    </Button>
  );
  return (
    <Card title="When" aside={toggle}>
      <Stack gap="xs" px="xs" pb="sm">
        <Bars
          times={times}
          width={width}
          values={values}
          reading={(at) => `${TIME.format((times[at] ?? 0) * 1000)}: ${whole(values[at] ?? 0)} matched`}
          label={`Matches over time: ${whole(count)} in ${whole(values.length)} spans of ${duration(width)}`}
          onChoose={(at) => choose(times[at] ?? 0)}
        />
        <Text size="xs" c="dimmed" px="xs">
          Each bar is {duration(width)}. Press one to try the filter on its time alone.
        </Text>
      </Stack>
      {listed && (
        <DataTable
          label="Matches over time"
          items={hours.filter(([, own]) => own > 0).map(([us, own]) => ({ from: new Date(us / 1000), count: own }))}
          columns={columns}
          keyOf={({ from }) => from.toISOString()}
          nameOf={({ from }) => `Narrow to ${TIME.format(from)}`}
          onOpen={({ from }) => choose(from.getTime() / 1000)}
          minWidth={320}
        />
      )}
    </Card>
  );
}
