import type { ReactNode } from "react";

import { Card } from "../../parts/Card";
import { type Column, DataTable } from "../../parts/DataTable";
import { named, valued } from "./words";

export type Row = Record<string, unknown>;

interface Props {
  title: string;
  rows: readonly Row[];
  cells?: Record<string, (row: Row) => ReactNode>; // custom cells by column
  hides?: readonly string[];
}

/** A table of a job's rows with a column for each field; nothing if there are no rows. */
export function Rows({ title, rows, cells = {}, hides = [] }: Props) {
  const [first] = rows;
  if (first === undefined) return null;
  const names = Object.keys(first).filter((name) => !hides.includes(name));
  const columns: Column<Row>[] = names.map((name) => ({
    title: named(name),
    right: typeof first[name] === "number",
    cell: (row) => cells[name]?.(row) ?? valued(name, row[name]),
  }));
  const numbered = rows.map((row, at) => ({ ...row, at }));
  return (
    <Card title={title}>
      <DataTable label={title} items={numbered} columns={columns} keyOf={({ at }) => String(at)} minWidth={Math.max(480, names.length * 110)} />
    </Card>
  );
}
