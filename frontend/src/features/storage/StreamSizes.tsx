import { Progress } from "@mantine/core";

import { Card } from "../../parts/Card";
import { type Column, DataTable } from "../../parts/DataTable";
import { bytes, whole } from "../../parts/text";
import type { Storage, StreamSize } from "./storage";

/** Streams by size, largest first. */
export function StreamSizes({ storage }: { storage: Storage }) {
  const streams = [...storage.streams].sort((one, other) => other.bytes - one.bytes);
  const most = Math.max(1, streams[0]?.bytes ?? 0);
  const columns: Column<StreamSize>[] = [
    { title: "Stream", cell: ({ name }) => name },
    { title: "Share", cell: (stream) => <Progress value={(stream.bytes / most) * 100} w={160} size="sm" aria-label={`Share of ${stream.name}`} /> },
    { title: "Bytes", right: true, cell: (stream) => bytes(stream.bytes) },
    { title: "Live segments", right: true, cell: ({ segments }) => whole(segments.live) },
    { title: "Archived", right: true, cell: ({ segments }) => whole(segments.archived) },
    { title: "Dropped", right: true, cell: ({ segments }) => whole(segments.dropped) },
    { title: "First stored", right: true, cell: ({ first }) => whole(first) },
    { title: "Last", right: true, cell: ({ last }) => whole(last) },
  ];
  return (
    <Card title="Streams by size">
      <DataTable label="Streams by size" items={streams} columns={columns} keyOf={({ name }) => name} minWidth={860} />
    </Card>
  );
}
