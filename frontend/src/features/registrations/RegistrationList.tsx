import { Text, Tooltip } from "@mantine/core";

import { textOf } from "../../api/problem";
import type { Column } from "../../parts/DataTable";
import { Empty } from "../../parts/Empty";
import { Listed } from "../../parts/Listed";
import { type Registration, type RegistrationFilter, useChangeRegistration, useRegistrations } from "./registrations";
import { RegistrationState } from "./RegistrationState";
import { summary } from "./summary";
import { Suspend } from "./Suspend";

const columnsIn = (zone: string): Column<Registration>[] => [
  { title: "Registration", cell: ({ id }) => id },
  { title: "State", cell: (registration) => <RegistrationState zone={zone} registration={registration} /> },
  { title: "Client", cell: ({ client }) => client, width: 120 },
  { title: "Streams", cell: ({ streams }) => <span title={streams.join(", ")}>{streams.join(", ")}</span>, width: 150 },
  { title: "Filter", cell: (registration) => <span title={summary(registration)}>{summary(registration)}</span>, width: 280 },
  { title: "Callback", width: 190, cell: ({ callback }) => (callback === null ? <Text span size="sm" c="dimmed">none</Text> : <span title={callback}>{callback}</span>) },
  { title: "Actions", right: true, cell: (registration) => <Suspending zone={zone} registration={registration} /> },
];

function Suspending({ zone, registration }: { zone: string; registration: Registration }) {
  const change = useChangeRegistration(zone, registration.id, undefined);
  return (
    <Tooltip label={textOf(change.error)} disabled={!change.isError} opened={change.isError} color="red">
      <span>
        <Suspend registration={registration} change={change} small />
      </span>
    </Tooltip>
  );
}

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
      columns={columnsIn(zone)}
      keyOf={({ id }) => String(id)}
      nameOf={({ id }) => `Registration ${id}`}
      onOpen={({ id }) => onOpen(id)}
      minWidth={940}
      empty={<Nothing filtered={Object.values(filter).some((value) => value !== undefined)} />}
    />
  );
}

function Nothing({ filtered }: { filtered: boolean }) {
  if (filtered) return <Empty title="No matching registrations" about="Remove a filter to see more." />;
  return (
    <Empty
      title="No registrations"
      about="A registration selects events by stream and filter. With a callback, the hub posts each matching event to an endpoint. With a key of the client:"
      command={`curl ${location.origin}/v1/registrations -H "Authorization: Bearer $KEY" \\
     --json '{"streams": ["orders"], "type": "order.placed", "attributes": {"address.city": "Basel"},
              "callback": "https://example.org/hook"}'`}
    />
  );
}
