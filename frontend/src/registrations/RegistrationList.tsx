import { Paper, Skeleton, Text } from "@mantine/core";

import { itemsOf } from "../api/pages";
import { type Column, DataTable } from "../parts/DataTable";
import { Empty } from "../parts/Empty";
import { Moment } from "../parts/Moment";
import { More } from "../parts/More";
import { ProblemAlert } from "../parts/ProblemAlert";
import { type Registration, type RegistrationFilter, useRegistrations } from "./registrations";
import { summary } from "./summary";

const COLUMNS: Column<Registration>[] = [
  { title: "Ticket", cell: ({ id }) => id },
  { title: "Client", cell: ({ client }) => client },
  { title: "Streams", cell: ({ streams }) => streams.join(", ") },
  { title: "Asks for", cell: (registration) => <span title={summary(registration)}>{summary(registration)}</span> },
  { title: "Callback", cell: ({ callback }) => (callback === null ? <Text span size="sm" c="dimmed">none</Text> : <span title={callback}>{callback}</span>) },
  { title: "Created", cell: ({ created_at: at }) => <Moment at={at} /> },
];

interface Props {
  zone: string;
  filter: RegistrationFilter;
  onOpen: (registration: Registration) => void;
}

export function RegistrationList({ zone, filter, onOpen }: Props) {
  const list = useRegistrations(zone, filter);
  const items = itemsOf(list.data);
  if (list.isError) return <ProblemAlert error={list.error} onRetry={() => void list.refetch()} />;
  if (list.isPending) return <Skeleton h={240} aria-label="Loading" />;
  if (items.length === 0) return <Nothing filtered={Object.values(filter).some((value) => value !== undefined)} />;
  return (
    <Paper withBorder bg="var(--card)">
      <DataTable
        label="Registrations"
        items={items}
        columns={COLUMNS}
        keyOf={({ id }) => String(id)}
        nameOf={({ id }) => `Registration ${id}`}
        onOpen={onOpen}
        minWidth={860}
      />
      <More {...list} />
    </Paper>
  );
}

function Nothing({ filtered }: { filtered: boolean }) {
  if (filtered) return <Empty title="No registration is like that" about="Take a filter away to see more." />;
  return (
    <Empty
      title="Nobody has registered yet"
      about="A registration says which events a client wants: streams, and what their events must have. With a callback, the hub posts each of them there. By a key of the client:"
      command={`curl ${location.origin}/v1/registrations -H "Authorization: Bearer $KEY" \\
     --json '{"streams": ["orders"], "type": "order.placed", "attributes": {"address.city": "Basel"},
              "callback": "https://example.org/hook"}'`}
    />
  );
}
