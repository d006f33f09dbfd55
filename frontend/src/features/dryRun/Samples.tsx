import { Paper, Text } from "@mantine/core";
import { useState } from "react";

import { EventDetail } from "../eventDetail/EventDetail";
import { EventRow } from "../events/EventRow";
import type { DeliveredEvent } from "../events/frames";
import { Side } from "../../parts/Side";
import { whole } from "../../parts/text";
import type { FilterRequest } from "../filters/draft";
import { ExplainedDraft } from "../explain/ExplainedDraft";
import classes from "./Samples.module.css";

type Sample = Pick<DeliveredEvent, "segment" | "sequence" | "appended_at" | "event">;

interface Props {
  zone: string;
  request: FilterRequest;
  outcome: { stream: string; samples: { first: readonly Sample[]; last: readonly Sample[] } };
}

/** Samples of the matched events; an opened one explains why it matched. */
export function Samples({ zone, request, outcome: { stream, samples } }: Props) {
  const [opened, setOpened] = useState<DeliveredEvent>();
  if (samples.first.length === 0) return null;
  return (
    <>
      <Rows title={samples.last.length === 0 ? "Matched events" : "First matched events"} samples={samples.first} onOpen={setOpened} />
      {samples.last.length > 0 && <Rows title="Last matched events" samples={samples.last} onOpen={setOpened} />}
      <Side of={opened} title={({ sequence }) => `${stream} ${whole(sequence)}`} onClose={() => setOpened(undefined)}>
        {({ sequence }) => (
          <EventDetail
            zone={zone}
            stream={stream}
            sequence={sequence}
            top={<ExplainedDraft zone={zone} request={request} stream={stream} sequence={sequence} />}
          />
        )}
      </Side>
    </>
  );
}

function Rows({ title, samples, onOpen }: { title: string; samples: readonly Sample[]; onOpen: (event: DeliveredEvent) => void }) {
  return (
    <section aria-label={title}>
      <Text size="sm" c="dimmed" mb={4}>
        {title}
      </Text>
      <Paper withBorder bg="var(--card)" component="ul" className={classes.list}>
        {samples.map((sample) => (
          <li key={sample.sequence} className={classes.row}>
            <EventRow frame={deliveredEvent(sample)} onOpen={onOpen} />
          </li>
        ))}
      </Paper>
    </section>
  );
}

function deliveredEvent(sample: Sample): DeliveredEvent {
  return { ...sample, prev: sample.sequence - 1, liveness: "playback" };
}
