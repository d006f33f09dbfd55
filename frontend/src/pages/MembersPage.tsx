import { Stack, Title } from "@mantine/core";

import { useZone } from "../api/zone";
import { type ConnectedClient, type Member, useMembers, usePresence } from "../features/monitoring/monitoring";
import { MonitoringSwitch } from "../features/monitoring/MonitoringSwitch";
import type { Column } from "../parts/DataTable";
import { Empty } from "../parts/Empty";
import { Listed } from "../parts/Listed";
import { Moment } from "../parts/Moment";
import { PageHeader } from "../parts/PageHeader";

const MEMBERS: Column<Member>[] = [
  { title: "Process", cell: ({ kind }) => kind },
  { title: "Node", cell: ({ node }) => node },
  { title: "Process id", cell: ({ pid }) => pid },
  { title: "Version", cell: ({ version }) => version },
  { title: "Since", cell: ({ started_at: at }) => <Moment at={at} /> },
  { title: "Last heartbeat", cell: ({ last_seen_at: at }) => <Moment at={at} /> },
];

const CLIENTS: Column<ConnectedClient>[] = [
  { title: "Client", cell: ({ client }) => client },
  { title: "Sockets", cell: ({ sockets }) => sockets },
  { title: "Since", cell: ({ since }) => (since === null ? "–" : <Moment at={since} />) },
];

/** The processes of the hub, and the clients of the zone that are connected. */
export function MembersPage() {
  const zone = useZone();
  return (
    <>
      <PageHeader title="Members" about="The processes of the hub, and the connected clients of the zone.">
        <MonitoringSwitch zone={zone} kind="presence" label="Connections are events" />
      </PageHeader>
      <Stack gap="lg">
        <section>
          <Title order={2} mb="xs">
            Processes of the hub
          </Title>
          <Listed
            list={useMembers()}
            label="Processes of the hub"
            columns={MEMBERS}
            keyOf={({ id }) => id}
            minWidth={820}
            empty={<Empty title="No processes" about="A process is listed from its first heartbeat on." />}
          />
        </section>
        <section>
          <Title order={2} mb="xs">
            Connected clients
          </Title>
          <Listed
            list={usePresence(zone)}
            label="Connected clients"
            columns={CLIENTS}
            keyOf={({ client }) => client}
            minWidth={480}
            empty={<Empty title="No connected clients" about="A client is listed while it has an open websocket, or a listener over HTTP." />}
          />
        </section>
      </Stack>
    </>
  );
}
