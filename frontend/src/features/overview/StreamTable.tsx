import { Anchor, Text } from "@mantine/core";
import { Link } from "react-router";

import { pathIn } from "../../api/zone";
import { Card } from "../../parts/Card";
import { type Column, DataTable } from "../../parts/DataTable";
import { rate, whole } from "../../parts/text";
import { type Overview, type Readings, streamRate } from "./readings";

type Stream = Overview["streams"][number];

/** Each stream's last sequence, rate, match position and lag. */
export function StreamTable({ zone, readings }: { zone: string; readings: Readings }) {
  const columns: Column<Stream>[] = [
    {
      title: "Stream",
      cell: ({ name }) => (
        <Anchor component={Link} to={pathIn(zone, `streams/${encodeURIComponent(name)}`)} size="sm" fw={600}>
          {name}
        </Anchor>
      ),
    },
    { title: "Last sequence", right: true, cell: (stream) => whole(stream.last) },
    { title: "Per second", right: true, cell: (stream) => orNothing(streamRate(readings, stream.name), rate) },
    { title: "Matched up to", right: true, cell: (stream) => orNothing(stream.matched, whole) },
    { title: "Lag", right: true, cell: (stream) => orNothing(stream.lag, whole) },
  ];
  return (
    <Card title="Streams">
      <DataTable label="Streams" items={readings.now.streams} columns={columns} keyOf={(stream) => stream.name} minWidth={520} />
    </Card>
  );
}

function orNothing(value: number | null, format: (value: number) => string) {
  if (value !== null) return format(value);
  return (
    <Text span c="dimmed" aria-label="none">
      –
    </Text>
  );
}
