import { Group, Stack, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { Empty } from "../../parts/Empty";
import { Facts } from "../../parts/Facts";
import { Form } from "../../parts/Form";
import { Listed } from "../../parts/Listed";
import { Loading } from "../../parts/Loading";
import { Moment } from "../../parts/Moment";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { Removal } from "../../parts/Removal";
import { whole } from "../../parts/text";
import { DeliveryInputs } from "./DeliveryInputs";
import { oneSessionGroup, type SessionGroup, useChangeSessionGroup, useDeleteSessionGroup, useSessions } from "./sessions";
import { SessionState } from "./SessionState";
import { Refused, Switches } from "./Switches";

interface Props {
  zone: string;
  id: number;
  onDeleted: () => void;
}

/** One session group: its state, its settings, its members and its actions. */
export function SessionGroupDetail({ zone, id, onDeleted }: Props) {
  const { data, error, isError, refetch } = useQuery(oneSessionGroup(zone, id));
  const change = useChangeSessionGroup(zone, id, data?.etag);
  const remove = useDeleteSessionGroup(zone, id);
  if (isError && data === undefined) return <ProblemAlert error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading h={260} />;
  const group = data.value;
  const reload = () => {
    change.reset();
    void refetch();
  };
  return (
    <Stack gap="lg">
      <About group={group} />
      <Refused error={change.error} onReload={reload} />
      <Group gap="xs">
        <Switches
          suspended={group.suspended}
          disconnected={group.disconnected}
          suspends
          connects
          busy={change.isPending}
          onSwitch={(next) => change.mutate(next)}
        />
        <Removal
          title={`Delete the session group ${group.name}?`}
          about="Its registrations are deleted with it. A group with members cannot be deleted; remove them from it first."
          removal={remove}
          onConfirm={() => remove.mutate(undefined, { onSuccess: onDeleted })}
        />
      </Group>
      <Settings key={group.changed} zone={zone} group={group} etag={data.etag} />
      <Members zone={zone} group={group} />
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
        ["Members", whole(one.sessions)],
        ["Registrations", whole(one.registrations)],
        ["Created", <Moment key="created" at={one.created_at} />],
      ]}
    />
  );
}

function Settings({ zone, group, etag }: { zone: string; group: SessionGroup; etag: string | undefined }) {
  const change = useChangeSessionGroup(zone, group.id, etag);
  const [delivery, setDelivery] = useState({ quality: group.quality, order: group.order, window: group.window as number | string });
  return (
    <section>
      <Title order={2} mb="xs">
        Delivery to all members
      </Title>
      <Form
        fields={["quality", "order", "window"]}
        error={change.error}
        busy={change.isPending}
        action="Save"
        ready
        onSubmit={() => change.mutate({ ...delivery, window: Number(delivery.window) })}
      >
        <DeliveryInputs values={delivery} error={change.error} onChange={setDelivery} />
      </Form>
    </section>
  );
}

function Members({ zone, group }: { zone: string; group: SessionGroup }) {
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
          {
            title: "State",
            cell: ({ suspended, delivery }) => <SessionState suspended={suspended} disconnected={delivery?.disconnected === true} />,
          },
        ]}
        keyOf={({ id }) => String(id)}
        minWidth={360}
        empty={<Empty title="No members" about="Choose this group in the settings of a consumer session." />}
      />
    </section>
  );
}
