import { Paper, Skeleton } from "@mantine/core";

import { itemsOf } from "../api/pages";
import { type Column, DataTable } from "../parts/DataTable";
import { Empty } from "../parts/Empty";
import { Moment } from "../parts/Moment";
import { More } from "../parts/More";
import { ProblemAlert } from "../parts/ProblemAlert";
import { type Endpoint, useEndpoints } from "./endpoints";
import { EndpointState } from "./EndpointState";

const COLUMNS: Column<Endpoint>[] = [
  { title: "Endpoint", cell: ({ id }) => id },
  { title: "URL", cell: ({ url }) => <span title={url}>{url}</span> },
  { title: "Client", cell: ({ client }) => client },
  { title: "State", cell: (endpoint) => <EndpointState endpoint={endpoint} /> },
  { title: "Order", cell: ({ ordered }) => (ordered ? "in order" : "in parallel") },
  { title: "Changed", cell: ({ changed_at: at }) => <Moment at={at} /> },
];

export function EndpointList({ zone, onOpen }: { zone: string; onOpen: (endpoint: Endpoint) => void }) {
  const list = useEndpoints(zone);
  const items = itemsOf(list.data);
  if (list.isError) return <ProblemAlert error={list.error} onRetry={() => void list.refetch()} />;
  if (list.isPending) return <Skeleton h={240} aria-label="Loading" />;
  if (items.length === 0) {
    return (
      <Empty
        title="There is no endpoint yet"
        about="An endpoint is a URL that the hub posts events to, signed with a secret of its own. A registration that names a callback makes one, or make it first. By a key of the client:"
        command={`curl ${location.origin}/v1/endpoints -H "Authorization: Bearer $KEY" \\
     --json '{"url": "https://example.org/hook", "ordered": true}'`}
      />
    );
  }
  return (
    <Paper withBorder bg="var(--card)">
      <DataTable
        label="Endpoints"
        items={items}
        columns={COLUMNS}
        keyOf={({ id }) => String(id)}
        nameOf={({ id }) => `Endpoint ${id}`}
        onOpen={onOpen}
        minWidth={760}
      />
      <More {...list} />
    </Paper>
  );
}
