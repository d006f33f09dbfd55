import { Stack, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";

import { outcomeOf } from "../endpoints/endpoints";
import { SequenceLink } from "../streams/links";
import { Facts } from "../../parts/Facts";
import { Json } from "../../parts/Json";
import { Loading } from "../../parts/Loading";
import { Moment } from "../../parts/Moment";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { State } from "../../parts/State";
import { whole } from "../../parts/text";
import { type OneDelivery, useDelivery } from "./deliveries";
import { Attempts } from "./Attempts";
import { DeliveryActions } from "./DeliveryActions";

/** One delivery, with each attempt and the event. */
export function DeliveryDetail({ zone, id }: { zone: string; id: string }) {
  const { data, error, isError, refetch } = useDelivery(zone, id);
  if (isError && data === undefined) return <ProblemAlert error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading h={320} />;
  return (
    <Stack gap="lg">
      <Facts facts={factsOf(zone, data)} />
      <DeliveryActions zone={zone} delivery={data} />
      <section>
        <Title order={2} mb="xs">
          Attempts
        </Title>
        <Attempts attempts={data.attempts} />
      </section>
      <section>
        <Title order={2} mb="xs">
          Event
        </Title>
        {data.event === null ? (
          <Text size="sm" c="dimmed">
            The event is no longer stored.
          </Text>
        ) : (
          <Json value={data.event} label="the event" />
        )}
      </section>
    </Stack>
  );
}

function factsOf(zone: string, delivery: OneDelivery): [string, ReactNode][] {
  const { stream, sequence, endpoint, registrations, state, attempt_count: attempts, next_attempt_at: next } = delivery;
  const facts: [string, ReactNode][] = [
    ["Event", <Event key="event" zone={zone} stream={stream} sequence={sequence} />],
    ["Endpoint", endpoint],
    ["Registrations", registrations.length === 0 ? "none" : registrations.join(", ")],
    ["State", <State key="state" state={state} />],
    ["Attempts", attempts],
    ["Created", <Moment key="created" at={delivery.created_at} />],
  ];
  if (delivery.gap !== null) facts.splice(1, 0, ["Gap notice", gapText(delivery.gap)]);
  if (delivery.last_outcome !== null) facts.push(["Failed with", outcomeOf({ outcome: delivery.last_outcome, status: delivery.last_status })]);
  if (delivery.resent_at !== null) facts.push(["Sent again", <Moment key="resent" at={delivery.resent_at} />]);
  if (state === "pending" && next !== null) facts.push(["Next attempt", <Moment key="next" at={next} />]);
  if (delivery.finished_at !== null) facts.push(["Finished", <Moment key="finished" at={delivery.finished_at} />]);
  return facts;
}

function Event({ zone, stream, sequence }: { zone: string; stream: string; sequence: number }) {
  return (
    <>
      {stream} <SequenceLink zone={zone} stream={stream} first={sequence} last={sequence} />
    </>
  );
}

function gapText({ first, last, why }: NonNullable<OneDelivery["gap"]>): string {
  return `${whole(first)} to ${whole(last)} were dropped: ${why}`;
}
