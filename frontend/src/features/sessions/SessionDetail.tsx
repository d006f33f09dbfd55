import { Anchor, Group, Select, Stack, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "react-router";

import { errorAt } from "../../api/problem";
import { pathIn } from "../../api/zone";
import { Facts } from "../../parts/Facts";
import { Form } from "../../parts/Form";
import { Loading } from "../../parts/Loading";
import { Moment } from "../../parts/Moment";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { Removal } from "../../parts/Removal";
import { whole } from "../../parts/text";
import { DeliveryInputs } from "./DeliveryInputs";
import { oneSession, type Session, useChangeSession, useDeleteSession, useSessionGroupNames } from "./sessions";
import { SessionState } from "./SessionState";
import { suppliesOf, SuppliesInput, suppliesText } from "./SuppliesInput";
import { Refused, Switches } from "./Switches";

interface Props {
  zone: string;
  id: number;
  onDeleted: () => void;
}

/** One session: its state, its settings and its actions. */
export function SessionDetail({ zone, id, onDeleted }: Props) {
  const { data, error, isError, refetch } = useQuery(oneSession(zone, id));
  const change = useChangeSession(zone, id, data?.etag);
  const remove = useDeleteSession(zone, id);
  if (isError && data === undefined) return <ProblemAlert error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading h={260} />;
  const session = data.value;
  const reload = () => {
    change.reset();
    void refetch();
  };
  return (
    <Stack gap="lg">
      <About zone={zone} session={session} />
      <Refused error={change.error} onReload={reload} />
      <Group gap="xs">
        <Switches
          suspended={session.suspended}
          disconnected={session.disconnected}
          suspends={session.kind !== "admin"}
          connects={session.kind === "consumer"}
          busy={change.isPending}
          onSwitch={(next) => change.mutate(next)}
        />
        <Removal
          title={`Delete the session ${session.name}?`}
          about="Its registrations, their groups and its positions are deleted with it."
          removal={remove}
          onConfirm={() => remove.mutate(undefined, { onSuccess: onDeleted })}
        />
      </Group>
      {session.kind !== "admin" && <Settings key={session.changed} zone={zone} session={session} etag={data.etag} />}
    </Stack>
  );
}

function About({ zone, session: one }: { zone: string; session: Session }) {
  const registrations = `${pathIn(zone, "registrations")}?client=${encodeURIComponent(one.client)}`;
  return (
    <Facts
      facts={[
        ["Name", one.name],
        ["Client", one.client],
        ["Kind", one.kind],
        ["State", <SessionState key="state" suspended={one.suspended} disconnected={one.delivery?.disconnected === true} />],
        ...(one.kind === "supplier" ? ([["Supplies", suppliesText(one.supplies).replaceAll("\n", ", ")]] as const) : []),
        ...(one.delivery === null
          ? []
          : ([
              ["Session group", one.group ?? "none"],
              ["Delivery", `${one.delivery.quality.replace("_", " ")}, ${one.delivery.order}, window ${whole(one.delivery.window)}`],
              ["Connected since", one.connected_at === null ? "not connected" : <Moment key="connected" at={one.connected_at} />],
              [
                "Registrations",
                <Anchor key="registrations" component={Link} to={registrations} size="sm">
                  {whole(one.registrations)}
                </Anchor>,
              ],
            ] as const)),
        ["Created", <Moment key="created" at={one.created_at} />],
      ]}
    />
  );
}

function Settings({ zone, session, etag }: { zone: string; session: Session; etag: string | undefined }) {
  const change = useChangeSession(zone, session.id, etag);
  const groups = useSessionGroupNames(zone);
  const [supplies, setSupplies] = useState(suppliesText(session.supplies));
  const [group, setGroup] = useState(session.group);
  const [delivery, setDelivery] = useState({ quality: session.quality, order: session.order, window: session.window as number | string });
  const isSupplier = session.kind === "supplier";
  const body = isSupplier ? { supplies: suppliesOf(supplies) } : { group, ...delivery, window: Number(delivery.window) };
  return (
    <section>
      <Title order={2} mb="xs">
        Settings
      </Title>
      <Form
        fields={["supplies", "group", "quality", "order", "window"]}
        error={change.error}
        busy={change.isPending}
        action="Save"
        ready={!isSupplier || supplies.trim() !== ""}
        onSubmit={() => change.mutate(body)}
      >
        {isSupplier ? (
          <SuppliesInput value={supplies} error={change.error} onChange={setSupplies} />
        ) : (
          <>
            <Select
              label="Session group"
              description="The settings of delivery of a group apply instead of those below."
              placeholder="None"
              data={[...new Set([...(groups.data ?? []), ...(session.group === null ? [] : [session.group])])]}
              value={group}
              clearable
              searchable
              onChange={setGroup}
              error={errorAt(change.error, "group")}
            />
            <DeliveryInputs values={delivery} error={change.error} onChange={setDelivery} />
          </>
        )}
      </Form>
    </section>
  );
}
