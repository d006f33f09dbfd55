import { Anchor, Stack, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { Link } from "react-router";

import { errorAt } from "../../api/problem";
import type { Loaded } from "../../api/client";
import { pathIn } from "../../api/zone";
import { Facts } from "../../parts/Facts";
import { Form } from "../../parts/Form";
import { Loading } from "../../parts/Loading";
import { Moment } from "../../parts/Moment";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { whole } from "../../parts/text";
import { Undisturbed } from "../../parts/Undisturbed";
import { Claims } from "./Claims";
import { DELIVERY_FIELDS, deliveryFields, DeliveryInputs, deliveryOf } from "./DeliveryInputs";
import { GroupInput } from "./GroupInput";
import { useOwners } from "./owners";
import { Positions } from "./Positions";
import { deliveryText, oneSession, type Session, useChangeSession, useDeleteSession } from "./sessions";
import { StateOf } from "./SessionState";
import { suppliesOf, SuppliesInput, suppliesText } from "./SuppliesInput";
import { Switches } from "./Switches";

interface Props {
  zone: string;
  id: number;
  registrations: (session: Session) => ReactNode; // of a consumer session
  onDeleted: () => void;
}

/** One session: its state, its actions, its streams, its registrations and its settings. */
export function SessionDetail({ zone, id, registrations, onDeleted }: Props) {
  const { data, error, isError, refetch } = useQuery(oneSession(zone, id));
  const change = useChangeSession(zone, id, data?.etag);
  const remove = useDeleteSession(zone, id);
  if (isError && data === undefined) return <ProblemAlert error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading h={260} />;
  const session = data.value;
  return (
    <Stack gap="lg">
      <About zone={zone} session={session} />
      <Switches
        suspended={session.suspended}
        disconnected={session.disconnected}
        suspends={session.kind !== "admin"}
        connects={session.kind === "consumer"}
        change={change}
        onReload={() => void refetch()}
        removal={{
          title: `Delete the session ${session.name}?`,
          about: "Its registrations, their groups and its positions are deleted with it.",
          removal: remove,
          onConfirm: () => remove.mutate(undefined, { onSuccess: onDeleted }),
        }}
      />
      {session.kind === "consumer" && (
        <>
          <Positions zone={zone} session={session} />
          {session.delivery?.quality === "reliable" && <Claims zone={zone} holder={{ of: "session", id }} />}
          {registrations(session)}
        </>
      )}
      {session.kind !== "admin" && (
        <Undisturbed found={data} reload={refetch}>
          {(found, renew) => <Settings zone={zone} found={found} onReload={renew} />}
        </Undisturbed>
      )}
    </Stack>
  );
}

function About({ zone, session: one }: { zone: string; session: Session }) {
  const { delivery } = one;
  return (
    <Facts
      facts={[
        ["Name", one.name],
        ["Client", one.client],
        ["Kind", one.kind],
        ["State", <StateOf key="state" session={one} />],
        ...(one.kind === "supplier" ? ([["Supplied types", suppliesText(one.supplies).replaceAll("\n", ", ")]] as const) : []),
        ...(delivery === null
          ? []
          : ([
              ["Connection", <Connection key="connection" session={one} />],
              ["Session group", one.group === null ? "none" : <GroupLink key="group" zone={zone} name={one.group} />],
              ["Delivery", deliveryText(delivery)],
              ...(one.lag === null ? [] : ([["Lag", one.lag === 1 ? "1 event" : `${whole(one.lag)} events`]] as const)),
              ["Registrations", whole(one.registrations)],
            ] as const)),
        ["Created", <Moment key="created" at={one.created_at} />],
      ]}
    />
  );
}

function Connection({ session: { connected_at: at, connected_process: process } }: { session: Session }) {
  if (at === null) return "none";
  return (
    <>
      since <Moment at={at} />, process <span className="mono">{process}</span>
    </>
  );
}

function GroupLink({ zone, name }: { zone: string; name: string }) {
  const id = useOwners(zone).data?.groups.find((group) => group.name === name)?.id;
  if (id === undefined) return name;
  return (
    <Anchor component={Link} to={`${pathIn(zone, "sessions")}?session_group=${id}`} size="sm">
      {name}
    </Anchor>
  );
}

function Settings({ zone, found: { value: session, etag }, onReload }: { zone: string; found: Loaded<Session>; onReload: () => void }) {
  const change = useChangeSession(zone, session.id, etag);
  const [supplies, setSupplies] = useState(suppliesText(session.supplies));
  const [group, setGroup] = useState(session.group);
  const [delivery, setDelivery] = useState(() => deliveryOf(session));
  const isSupplier = session.kind === "supplier";
  const body = isSupplier ? { supplies: suppliesOf(supplies) } : { group, ...deliveryFields(delivery) };
  return (
    <section>
      <Title order={2} mb="xs">
        Settings
      </Title>
      <Form
        fields={["supplies", "group", ...DELIVERY_FIELDS]}
        error={change.error}
        busy={change.isPending}
        action="Save"
        ready={!isSupplier || supplies.trim() !== ""}
        onSubmit={() => change.mutate(body, { onSuccess: onReload })}
        onReload={onReload}
      >
        {isSupplier ? (
          <SuppliesInput value={supplies} error={change.error} onChange={setSupplies} />
        ) : (
          <>
            <GroupInput zone={zone} value={group} onChange={setGroup} error={errorAt(change.error, "group")} />
            {group === null && <DeliveryInputs values={delivery} error={change.error} onChange={setDelivery} />}
          </>
        )}
      </Form>
    </section>
  );
}
