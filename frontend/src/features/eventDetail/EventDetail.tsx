import { Anchor, Group, Stack, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "react-router";

import { pathIn } from "../../api/zone";
import type { DeliveredEvent } from "../events/frames";
import { Command } from "../../parts/Command";
import { Facts } from "../../parts/Facts";
import { Json } from "../../parts/Json";
import { Moment } from "../../parts/Moment";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { State } from "../../parts/State";
import { whole } from "../../parts/text";
import { emitCurl, readCurl } from "../events/curl";
import { EventMatches } from "./EventMatches";
import { oneEvent, type StoredEvent } from "../../api/oneEvent";

const LIVENESS: Record<string, string> = {
  live: "live: appended while this page listened",
  recovery: "recovery: missed while this page was disconnected",
  playback: "playback: stored before this page started to listen",
};

interface Props {
  zone: string;
  stream: string;
  sequence: number;
  frame?: DeliveredEvent; // as it was delivered
  top?: ReactNode; // the page's own content above the event
}

/** One event with the fields that the log assigned. */
export function EventDetail({ zone, stream, sequence, frame, top }: Props) {
  const stored = useQuery(oneEvent(zone, stream, sequence));
  const { event, control, facts } = factsOf(stored.data, frame);

  return (
    <Stack gap="lg">
      {stored.isError && <ProblemAlert error={stored.error} onRetry={() => void stored.refetch()} />}
      {top}
      <Facts facts={[["Sequence", whole(sequence)], ...facts]} />
      <Group gap="md">
        <Anchor
          component={Link}
          to={`${pathIn(zone, "deliveries")}?stream=${encodeURIComponent(stream)}&sequence=${sequence}`}
          size="sm"
        >
          Its deliveries
        </Anchor>
      </Group>
      {event !== undefined && (
        <>
          <Json value={event} label="the event" />
          <EventMatches zone={zone} stream={stream} sequence={sequence} />
          {control !== undefined && (
            <section>
              <Title order={2} mb="xs">
                Controls
              </Title>
              <Json value={control} label="its controls" />
            </section>
          )}
          <section>
            <Title order={2} mb="xs">
              As curl
            </Title>
            <Stack gap="xs">
              <Command text={readCurl(stream, sequence)} />
              {stream !== "system" && <Command text={emitCurl(stream, event)} />}
            </Stack>
          </section>
        </>
      )}
    </Stack>
  );
}

const ASSIGNED = ["stream", "segment", "sequence", "appended_at", "mask", "signature", "control"]; // by the log

function factsOf(found: StoredEvent | undefined, frame: DeliveredEvent | undefined) {
  const facts: [string, ReactNode][] = [];
  const known = found ?? frame;
  if (known !== undefined) {
    facts.push(["Appended", <Moment key="at" at={known.appended_at} />]);
    facts.push(["Segment", <span key="segment" className="mono">{known.segment}</span>]);
  }
  if (frame !== undefined) facts.push(["Liveness", LIVENESS[frame.liveness] ?? frame.liveness]);
  if (found !== undefined) {
    facts.push(["Channels", <Channels key="channels" names={found.channels} mask={found.mask} />]);
    const audience = found.control.audience;
    if (Array.isArray(audience) && audience.length > 0) facts.push(["Audience", <Channels key="audience" names={audience.map(String)} mask="" />]);
    facts.push(["Signature", <span key="signature" className="mono">{found.signature}</span>]);
  }
  const own = found && Object.fromEntries(Object.entries(found).filter(([name]) => !ASSIGNED.includes(name)));
  return { facts, event: own ?? frame?.event, control: found?.control };
}

/** Badges with the names, or the mask's bits if no name is known. */
function Channels({ names, mask }: { names: readonly string[]; mask: string }) {
  if (names.length === 0) return <span className="mono">{mask}</span>;
  return (
    <Group gap={6}>
      {names.map((name) => (
        <State key={name} state="channel" label={name} />
      ))}
    </Group>
  );
}
