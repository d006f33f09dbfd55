import { Anchor, Tooltip } from "@mantine/core";

import { Card } from "../../parts/Card";
import { type Column, DataTable } from "../../parts/DataTable";
import { bytes } from "../../parts/text";
import { fileAt } from "./jobs";
import type { OneRun, RunFile } from "./types";

/** The files of a run's result, for download. */
export function RunFiles({ run }: { run: OneRun }) {
  const columns: Column<RunFile>[] = [
    { title: "File", cell: ({ name }) => <Anchor href={fileAt(run, name)} download={name.split("/").at(-1)} size="sm" className="mono">{name}</Anchor> },
    { title: "Contents", cell: ({ about }) => about, width: 460 },
    { title: "Bytes", right: true, cell: ({ bytes: size }) => bytes(size) },
    { title: "SHA-256", cell: ({ sha256 }) => <Tooltip label={sha256}><span className="mono">{sha256.slice(0, 12)}…</span></Tooltip> },
  ];
  return (
    <Card title="Files">
      <DataTable label="Files" items={run.files} columns={columns} keyOf={({ name }) => name} minWidth={720} />
    </Card>
  );
}
