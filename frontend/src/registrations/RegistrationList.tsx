import { Text } from "@mantine/core";

import type { Column } from "../parts/DataTable";
import { Empty } from "../parts/Empty";
import { Listed } from "../parts/Listed";
import { Moment } from "../parts/Moment";
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
  onOpen: (id: number) => void;
}

export function RegistrationList({ zone, filter, onOpen }: Props) {
  return (
    <Listed
      list={useRegistrations(zone, filter)}
      label="Registrations"
      columns={COLUMNS}
      keyOf={({ id }) => String(id)}
      nameOf={({ id }) => `Registration ${id}`}
      onOpen={({ id }) => onOpen(id)}
      minWidth={860}
      empty={<Nothing filtered={Object.values(filter).some((value) => value !== undefined)} />}
    />
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
