import { Text } from "@mantine/core";

import { type Column, DataTable } from "../../parts/DataTable";
import { Loading } from "../../parts/Loading";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { Share } from "../storage/Share";
import { amount, BOUNDED, type Bounded, type Limit, useLimits } from "./limits";

interface Row {
  bounded: Bounded;
  limit: Limit;
}

const COLUMNS: Column<Row>[] = [
  {
    title: "Limit",
    cell: ({ bounded }) => (
      <>
        {bounded.label}
        <Text size="xs" c="dimmed">
          {bounded.beyond}
        </Text>
      </>
    ),
  },
  { title: "Used", right: true, cell: ({ bounded, limit }) => (limit.used === null ? "not counted" : amount(bounded, limit.used)) },
  { title: "At most", right: true, cell: ({ bounded, limit }) => (limit.limit === null ? "no limit" : amount(bounded, limit.limit)) },
  { title: "Set by", cell: ({ limit }) => (limit.quota !== null ? "an operator" : limit.limit === null ? "" : "the hub") },
  { title: "Share", width: 200, cell: ({ limit: { used, limit } }) => used !== null && limit !== null && <Share part={used} whole={limit} /> },
];

/** The limits of a client, or without one of the zone, with their use. */
export function LimitsTable({ zone, client }: { zone: string; client?: string }) {
  const { data, error, isError, refetch } = useLimits(zone, client);
  if (isError && data === undefined) return <ProblemAlert error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading h={300} />;
  const rows = BOUNDED.flatMap((bounded) => {
    const limit = data[bounded.kind];
    return limit === undefined ? [] : [{ bounded, limit }];
  });
  return <DataTable label="Limits" items={rows} columns={COLUMNS} keyOf={({ bounded }) => bounded.kind} minWidth={620} />;
}
