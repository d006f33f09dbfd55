import { TextInput } from "@mantine/core";
import { useState } from "react";
import { useSearchParams } from "react-router";

import { errorAt } from "../api/problem";
import { useZone } from "../api/zone";
import type { Column } from "../parts/DataTable";
import { Empty } from "../parts/Empty";
import { Form } from "../parts/Form";
import { Listed } from "../parts/Listed";
import { Moment } from "../parts/Moment";
import { New } from "../parts/New";
import { PageHeader } from "../parts/PageHeader";
import { Side } from "../parts/Side";
import { ClientDetail } from "../features/clients/ClientDetail";
import { type Client, useClients, useCreateClient } from "../features/clients/clients";
import { GroupNames, GroupsInput } from "../features/clients/GroupsInput";

const COLUMNS: Column<Client>[] = [
  { title: "Client", cell: ({ name }) => name },
  { title: "Groups", cell: ({ groups }) => <GroupNames names={groups} /> },
  { title: "Created", cell: ({ created_at: at }) => <Moment at={at} /> },
];

/** Who may do what; the open client is in the address. */
export function ClientsPage() {
  const zone = useZone();
  const [search, setSearch] = useSearchParams();
  const close = () => setSearch({}, { replace: true });
  return (
    <>
      <PageHeader title="Clients" about="Who emits, listens and manages in this zone, and by which keys.">
        <New label="New client">
          {(made) => (
            <NewClient
              zone={zone}
              onMade={(name) => {
                made();
                setSearch({ client: name });
              }}
            />
          )}
        </New>
      </PageHeader>
      <Listed
        list={useClients(zone)}
        label="Clients"
        columns={COLUMNS}
        keyOf={({ name }) => name}
        nameOf={({ name }) => `Client ${name}`}
        onOpen={({ name }) => setSearch({ client: name })}
        minWidth={460}
        empty={
          <Empty
            title="There is no client yet"
            about="A client is a program or a party. It holds keys; each key says on which streams it may emit, listen or manage. Make one with New client, then give it a key."
          />
        }
      />
      <Side of={search.get("client") ?? undefined} title={(name) => name} size="xl" onClose={close}>
        {(name) => <ClientDetail key={name} zone={zone} name={name} onEnded={close} />}
      </Side>
    </>
  );
}

function NewClient({ zone, onMade }: { zone: string; onMade: (name: string) => void }) {
  const create = useCreateClient(zone);
  const [name, setName] = useState("");
  const [groups, setGroups] = useState<string[]>([]);
  return (
    <Form
      fields={["name", "groups"]}
      error={create.error}
      busy={create.isPending}
      action="Create"
      ready={name !== ""}
      onSubmit={() => create.mutate({ name, groups }, { onSuccess: () => onMade(name) })}
    >
      <TextInput
        label="Name"
        placeholder="shop"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        error={errorAt(create.error, "name")}
        data-autofocus
      />
      <GroupsInput value={groups} onChange={setGroups} error={errorAt(create.error, "groups")} />
    </Form>
  );
}
