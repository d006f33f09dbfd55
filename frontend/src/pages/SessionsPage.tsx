import { Group, Select, Stack, Title } from "@mantine/core";
import { useSearchParams } from "react-router";

import { type Faults, isFaulty, numberAt } from "../api/address";
import { useZone } from "../api/zone";
import { ClientFilter } from "../features/clients/ClientFilter";
import { NewSession } from "../features/sessions/NewSession";
import { NewSessionGroup } from "../features/sessions/NewSessionGroup";
import { SessionDetail } from "../features/sessions/SessionDetail";
import { SessionGroupDetail } from "../features/sessions/SessionGroupDetail";
import { deliveryText, KINDS, type Session, type SessionFilter, type SessionGroup, sharingText, useSessionGroups, useSessions } from "../features/sessions/sessions";
import { SessionState, StateOf } from "../features/sessions/SessionState";
import type { Column } from "../parts/DataTable";
import { Empty } from "../parts/Empty";
import { FaultAlert } from "../parts/FaultAlert";
import { Listed } from "../parts/Listed";
import { New } from "../parts/New";
import { PageHeader } from "../parts/PageHeader";
import { Side } from "../parts/Side";
import { whole } from "../parts/text";
import { OwnedRegistrations } from "./OwnedRegistrations";

const COLUMNS: Column<Session>[] = [
  { title: "Session", cell: ({ name }) => <span title={name}>{name}</span>, width: 200 },
  { title: "State", cell: (session) => <StateOf session={session} /> },
  { title: "Lag", cell: ({ lag }) => (lag === null ? "–" : whole(lag)), right: true },
  { title: "Delivery", cell: ({ delivery }) => (delivery === null ? "–" : deliveryText(delivery)) },
  { title: "Session group", cell: ({ group }) => group ?? "–", width: 150 },
  { title: "Client", cell: ({ client }) => client, width: 140 },
  { title: "Kind", cell: ({ kind }) => kind },
  { title: "Registrations", cell: ({ kind, registrations }) => (kind === "consumer" ? whole(registrations) : "–"), right: true },
];
const GROUP_COLUMNS: Column<SessionGroup>[] = [
  { title: "Session group", cell: ({ name }) => name, width: 220 },
  { title: "State", cell: ({ suspended, disconnected }) => <SessionState suspended={suspended} disconnected={disconnected} /> },
  { title: "Client", cell: ({ client }) => client },
  { title: "Delivery", cell: (group) => deliveryText(group) },
  { title: "Each event to", cell: (group) => sharingText(group) },
  { title: "Lag", cell: ({ lag }) => (lag === null ? "–" : whole(lag)), right: true },
  { title: "In flight", cell: ({ claims }) => (claims === null ? "–" : whole(claims)), right: true },
  { title: "Members", cell: ({ sessions }) => whole(sessions), right: true },
  { title: "Registrations", cell: ({ registrations }) => whole(registrations), right: true },
];

interface Asked extends SessionFilter {
  session?: number;
  session_group?: number;
}

/** Sessions and session groups; the open one and the filters are in the address. */
export function SessionsPage() {
  const zone = useZone();
  const [search, setSearch] = useSearchParams();
  const faults: Faults = {};
  const filter: SessionFilter = {
    client: search.get("client") ?? undefined,
    kind: KINDS.find((one) => one === search.get("kind")),
  };
  const session = numberAt(search, "session", faults);
  const group = numberAt(search, "session_group", faults);
  const go = (part: Asked) => setSearch(searchOf(part));
  const close = () => go(filter);
  return (
    <>
      <PageHeader title="Sessions" about="Through a session a client emits what it declares, registers and listens, or manages its sessions.">
        <New label="New session group" variant="default">
          {(made) => (
            <NewSessionGroup
              zone={zone}
              onMade={(id) => {
                made();
                go({ ...filter, session_group: id });
              }}
            />
          )}
        </New>
        <New label="New session">
          {(made) => (
            <NewSession
              zone={zone}
              onMade={(id) => {
                made();
                go({ ...filter, session: id });
              }}
            />
          )}
        </New>
      </PageHeader>
      <Stack gap="lg">
        <Filters zone={zone} filter={filter} onChange={go} />
        {isFaulty(faults) ? (
          <FaultAlert faults={faults} search={search} />
        ) : (
          <List zone={zone} filter={filter} onOpen={(id) => go({ ...filter, session: id })} />
        )}
        <section>
          <Title order={2} mb="xs">
            Session groups
          </Title>
          <Groups zone={zone} client={filter.client} onOpen={(id) => go({ ...filter, session_group: id })} />
        </section>
      </Stack>
      <Side of={session} title={(id) => `Session ${id}`} size="xl" onClose={close}>
        {(id) => (
          <SessionDetail
            key={id}
            zone={zone}
            id={id}
            registrations={({ name, client }) => <OwnedRegistrations zone={zone} of="session" filter={{ client, session: name }} />}
            onDeleted={close}
          />
        )}
      </Side>
      <Side of={group} title={(id) => `Session group ${id}`} size="xl" onClose={close}>
        {(id) => (
          <SessionGroupDetail
            key={id}
            zone={zone}
            id={id}
            registrations={({ name, client }) => <OwnedRegistrations zone={zone} of="session group" filter={{ client, session_group: name }} />}
            onOpen={(member) => go({ ...filter, session: member })}
            onDeleted={close}
          />
        )}
      </Side>
    </>
  );
}

function Filters({ zone, filter, onChange }: { zone: string; filter: SessionFilter; onChange: (filter: SessionFilter) => void }) {
  return (
    <Group gap="xs">
      <ClientFilter zone={zone} value={filter.client} onChange={(client) => onChange({ ...filter, client })} />
      <Select
        aria-label="Of the kind"
        placeholder="Every kind"
        data={KINDS}
        value={filter.kind ?? null}
        onChange={(next) => onChange({ ...filter, kind: KINDS.find((one) => one === next) })}
        clearable
        w={{ base: "100%", xs: 200 }}
      />
    </Group>
  );
}

function List({ zone, filter, onOpen }: { zone: string; filter: SessionFilter; onOpen: (id: number) => void }) {
  const isFiltered = filter.client !== undefined || filter.kind !== undefined;
  return (
    <Listed
      list={useSessions(zone, filter)}
      label="Sessions"
      columns={COLUMNS}
      keyOf={({ id }) => String(id)}
      nameOf={({ name }) => `Session ${name}`}
      onOpen={({ id }) => onOpen(id)}
      minWidth={980}
      empty={
        isFiltered ? (
          <Empty title="No such session" about="Remove the filters to see other sessions." />
        ) : (
          <Empty
            title="No sessions"
            about="A consumer session owns registrations, which are suspended, resumed and deleted with it. A supplier session emits the types that it declares. Requests act through a session with the header EventHub-Session."
          />
        )
      }
    />
  );
}

function Groups({ zone, client, onOpen }: { zone: string; client: string | undefined; onOpen: (id: number) => void }) {
  return (
    <Listed
      list={useSessionGroups(zone, client)}
      label="Session groups"
      columns={GROUP_COLUMNS}
      keyOf={({ id }) => String(id)}
      nameOf={({ name }) => `Session group ${name}`}
      onOpen={({ id }) => onOpen(id)}
      minWidth={860}
      empty={
        <Empty
          title="No session groups"
          about="Consumer sessions in a group share its registrations and its settings of delivery: every member gets each event that matches, or one of them does."
        />
      }
    />
  );
}

function searchOf({ client, kind, session, session_group: group }: Asked): URLSearchParams {
  const search = new URLSearchParams();
  if (client !== undefined) search.set("client", client);
  if (kind !== undefined) search.set("kind", kind);
  if (session !== undefined) search.set("session", String(session));
  if (group !== undefined) search.set("session_group", String(group));
  return search;
}
