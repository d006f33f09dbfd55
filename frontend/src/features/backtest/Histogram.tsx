import { Button, Stack, Text } from "@mantine/core";
import { useMemo, useState } from "react";
import { useNavigate } from "react-router";

import { Bars } from "../../parts/charts/Bars";
import { Card } from "../../parts/Card";
import { type Column, DataTable } from "../../parts/DataTable";
import { Moment } from "../../parts/Moment";
import { duration, whole } from "../../parts/text";

const TIME = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", hour12: false });

interface Props {
  histogram: [number, number][]; // start of each bucket in microseconds since 1970, and its matches
  width: number; // of a bucket, in seconds
  to: (range: [Date, Date]) => string; // the form with that range
}

interface Bucket {
  from: Date;
  count: number;
}

/** Matches over time; a selected bucket leads to the form with its time range filled in. */
export function Histogram({ histogram, width, to }: Props) {
  const navigate = useNavigate();
  const [listed, setListed] = useState(false);
  const [times, values] = useMemo(() => [histogram.map(([us]) => us / 1e6), histogram.map(([, own]) => own)], [histogram]);
  const count = values.reduce((sum, own) => sum + own, 0);
  const choose = (seconds: number) => void navigate(to([new Date(seconds * 1000), new Date((seconds + width) * 1000)]));
  const columns: Column<Bucket>[] = [
    { title: "From", cell: ({ from }) => <Moment at={from.toISOString()} /> },
    { title: "Matched", right: true, cell: (bucket) => whole(bucket.count) },
  ];
  const toggle = (
    <Button size="compact-sm" variant="default" aria-expanded={listed} onClick={() => setListed(!listed)}>
      {listed ? "Hide the numbers" : "As numbers"}
    </Button>
  );
  return (
    <Card title="Matches over time" aside={toggle}>
      <Stack gap="xs" px="xs" pb="sm">
        <Bars
          times={times}
          width={width}
          values={values}
          reading={(at) => `${TIME.format((times[at] ?? 0) * 1000)}: ${whole(values[at] ?? 0)} matched`}
          label={`Matches over time: ${whole(count)} in ${whole(values.length)} buckets of ${duration(width)}`}
          onChoose={(at) => choose(times[at] ?? 0)}
        />
        <Text size="xs" c="dimmed" px="xs">
          Each bar is {duration(width)}. Select one to run again on its time range.
        </Text>
      </Stack>
      {listed && (
        <DataTable
          label="Matches over time"
          items={histogram.filter(([, own]) => own > 0).map(([us, own]) => ({ from: new Date(us / 1000), count: own }))}
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
