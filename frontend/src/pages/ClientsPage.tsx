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

/** Clients with keys, grants and groups; the open client is in the address. */
export function ClientsPage() {
  const zone = useZone();
  const [search, setSearch] = useSearchParams();
  const close = () => setSearch({}, { replace: true });
  return (
    <>
      <PageHeader title="Clients" about="Clients of the zone with their keys, grants and groups.">
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
            title="No clients"
            about="A client is a program or a party. It has keys; the grants of a key allow it to emit to, listen to or manage streams. Create a client, then a key."
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
