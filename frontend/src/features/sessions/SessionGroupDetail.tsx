import { Stack, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";

import type { Loaded } from "../../api/client";
import { Empty } from "../../parts/Empty";
import { Facts } from "../../parts/Facts";
import { Form } from "../../parts/Form";
import { Listed } from "../../parts/Listed";
import { Loading } from "../../parts/Loading";
import { Moment } from "../../parts/Moment";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { whole } from "../../parts/text";
import { Undisturbed } from "../../parts/Undisturbed";
import { Claims } from "./Claims";
import { DELIVERY_FIELDS, deliveryFields, DeliveryInputs, deliveryOf } from "./DeliveryInputs";
import { GroupPositions } from "./Positions";
import { deliveryText, oneSessionGroup, type SessionGroup, sharingText, useChangeSessionGroup, useDeleteSessionGroup, useSessions } from "./sessions";
import { SessionState, StateOf } from "./SessionState";
import { Switches } from "./Switches";

interface Props {
  zone: string;
  id: number;
  registrations: (group: SessionGroup) => ReactNode;
  onOpen: (session: number) => void;
  onDeleted: () => void;
}

/** One session group: its state, its actions, its members, its registrations and its settings. */
export function SessionGroupDetail({ zone, id, registrations, onOpen, onDeleted }: Props) {
  const { data, error, isError, refetch } = useQuery(oneSessionGroup(zone, id));
  const change = useChangeSessionGroup(zone, id, data?.etag);
  const remove = useDeleteSessionGroup(zone, id);
  if (isError && data === undefined) return <ProblemAlert error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading h={260} />;
  const group = data.value;
  return (
    <Stack gap="lg">
      <About group={group} />
      <Switches
        suspended={group.suspended}
        disconnected={group.disconnected}
        suspends
        connects
        change={change}
        onReload={() => void refetch()}
        removal={{
          title: `Delete the session group ${group.name}?`,
          about: "Its registrations are deleted with it. A group with members cannot be deleted; remove them from it first.",
          removal: remove,
          onConfirm: () => remove.mutate(undefined, { onSuccess: onDeleted }),
        }}
      />
      <Members zone={zone} group={group} onOpen={onOpen} />
      {group.sharing === "one" && (
        <>
          <GroupPositions zone={zone} id={id} />
          <Claims zone={zone} holder={{ of: "session group", id }} />
        </>
      )}
      {registrations(group)}
      <Undisturbed found={data} reload={refetch}>
        {(found, renew) => <Settings zone={zone} found={found} onReload={renew} />}
      </Undisturbed>
    </Stack>
  );
}

function About({ group: one }: { group: SessionGroup }) {
  return (
    <Facts
      facts={[
        ["Name", one.name],
        ["Client", one.client],
        ["State", <SessionState key="state" suspended={one.suspended} disconnected={one.disconnected} />],
        ["Delivery", deliveryText(one)],
        ["Each event to", sharingText(one)],
        ...(one.lag === null || one.claims === null
          ? []
          : ([
              ["Lag", one.lag === 1 ? "1 event" : `${whole(one.lag)} events`],
              ["Events in flight", whole(one.claims)],
            ] as const)),
        ["Members", whole(one.sessions)],
        ["Registrations", whole(one.registrations)],
        ["Created", <Moment key="created" at={one.created_at} />],
      ]}
    />
  );
}

function Settings({ zone, found: { value: group, etag }, onReload }: { zone: string; found: Loaded<SessionGroup>; onReload: () => void }) {
  const change = useChangeSessionGroup(zone, group.id, etag);
  const [delivery, setDelivery] = useState(() => deliveryOf(group));
  return (
    <section>
      <Title order={2} mb="xs">
        Settings of delivery to all members
      </Title>
      <Form
        fields={DELIVERY_FIELDS}
        error={change.error}
        busy={change.isPending}
        action="Save"
        onSubmit={() => change.mutate(deliveryFields(delivery), { onSuccess: onReload })}
        onReload={onReload}
      >
        <DeliveryInputs values={delivery} error={change.error} onChange={setDelivery} />
      </Form>
    </section>
  );
}

function Members({ zone, group, onOpen }: { zone: string; group: SessionGroup; onOpen: (session: number) => void }) {
  return (
    <section>
      <Title order={2} mb="xs">
        Members
      </Title>
      <Listed
        list={useSessions(zone, { group: group.name })}
        label="Members of the session group"
        columns={[
          { title: "Session", cell: ({ name }) => name },
          { title: "Client", cell: ({ client }) => client },
          { title: "State", cell: (session) => <StateOf session={session} /> },
          { title: "Lag", cell: ({ lag }) => (lag === null ? "–" : whole(lag)), right: true },
          { title: "In flight", cell: ({ claims }) => whole(claims), right: true },
        ]}
        keyOf={({ id }) => String(id)}
        nameOf={({ name }) => `Member ${name}`}
        onOpen={({ id }) => onOpen(id)}
        minWidth={420}
        empty={<Empty title="No members" about="Choose this group in the settings of a consumer session." />}
      />
    </section>
  );
}
