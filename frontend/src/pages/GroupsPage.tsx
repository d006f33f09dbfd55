import { Select } from "@mantine/core";
import { useSearchParams } from "react-router";

import { type Faults, isFaulty, numberAt } from "../api/address";
import { useZone } from "../api/zone";
import { useClientNames } from "../features/clients/clients";
import type { Column } from "../parts/DataTable";
import { Empty } from "../parts/Empty";
import { FaultAlert } from "../parts/FaultAlert";
import { Listed } from "../parts/Listed";
import { Moment } from "../parts/Moment";
import { New } from "../parts/New";
import { PageHeader } from "../parts/PageHeader";
import { Side } from "../parts/Side";
import { whole } from "../parts/text";
import { GroupDetail } from "./GroupDetail";
import { type RegistrationGroup, useGroups } from "../features/groups/groups";
import { GroupState } from "../features/groups/GroupState";
import { NewGroup } from "../features/groups/NewGroup";

const COLUMNS: Column<RegistrationGroup>[] = [
  { title: "Group", cell: ({ name }) => name },
  { title: "State", cell: ({ suspended }) => <GroupState suspended={suspended} /> },
  { title: "Client", cell: ({ client }) => client },
  { title: "Registrations", cell: ({ registrations }) => whole(registrations), right: true },
  { title: "Created", cell: ({ created_at: at }) => <Moment at={at} /> },
];

interface Asked {
  client?: string;
  group?: number;
}

/** Registrations that are suspended and resumed together; the open group is in the address. */
export function GroupsPage() {
  const zone = useZone();
  const [search, setSearch] = useSearchParams();
  const faults: Faults = {};
  const client = search.get("client") ?? undefined;
  const shown = numberAt(search, "group", faults);
  const go = (part: Asked) => setSearch(searchOf(part));
  const close = () => go({ client });
  return (
    <>
      <PageHeader title="Groups" about="Registrations of a client that are suspended and resumed together.">
        <New label="New group">
          {(made) => (
            <NewGroup
              zone={zone}
              onMade={(group) => {
                made();
                go({ client, group });
              }}
            />
          )}
        </New>
      </PageHeader>
      <Clients zone={zone} value={client} onChange={(next) => go({ client: next })} />
      {isFaulty(faults) ? <FaultAlert faults={faults} search={search} /> : <List zone={zone} client={client} onOpen={(group) => go({ client, group })} />}
      <Side of={shown} title={(id) => `Group ${id}`} onClose={close}>
        {(id) => <GroupDetail key={id} zone={zone} id={id} onEnded={close} />}
      </Side>
    </>
  );
}

function Clients({ zone, value, onChange }: { zone: string; value: string | undefined; onChange: (client: string | undefined) => void }) {
  const clients = useClientNames(zone);
  return (
    <Select
      aria-label="Of the client"
      placeholder="Every client"
      data={clients.data?.names ?? []}
      value={value ?? null}
      onChange={(client) => onChange(client ?? undefined)}
      clearable
      searchable
      mb="md"
      w={{ base: "100%", xs: 200 }}
    />
  );
}

function List({ zone, client, onOpen }: { zone: string; client: string | undefined; onOpen: (id: number) => void }) {
  return (
    <Listed
      list={useGroups(zone, { client })}
      label="Groups"
      columns={COLUMNS}
      keyOf={({ id }) => String(id)}
      nameOf={({ name }) => `Group ${name}`}
      onOpen={({ id }) => onOpen(id)}
      minWidth={560}
      empty={
        client === undefined ? (
          <Empty
            title="No groups"
            about="A registration may be in a group of its client. Suspending the group suspends all its registrations at one position of each stream: later events do not match until the group is resumed. Create a group, then choose it in a registration."
          />
        ) : (
          <Empty title="This client has no group" about="Remove the filter to see those of other clients." />
        )
      }
    />
  );
}

function searchOf({ client, group }: Asked): URLSearchParams {
  const search = new URLSearchParams();
  if (client !== undefined) search.set("client", client);
  if (group !== undefined) search.set("group", String(group));
  return search;
}
