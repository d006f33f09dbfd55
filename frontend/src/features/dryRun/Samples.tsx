import { Paper, Text } from "@mantine/core";
import { useState } from "react";

import { EventDetail } from "../eventDetail/EventDetail";
import { EventRow } from "../events/EventRow";
import type { Told } from "../events/frames";
import { Side } from "../../parts/Side";
import { whole } from "../../parts/text";
import type { AskedFilter } from "../filters/draft";
import { ExplainedDraft } from "../explain/ExplainedDraft";
import classes from "./Samples.module.css";

type Sample = Pick<Told, "segment" | "sequence" | "appended_at" | "event">;

interface Props {
  zone: string;
  asked: AskedFilter;
  outcome: { stream: string; samples: { first: readonly Sample[]; last: readonly Sample[] } };
}

/** Some of the events that matched, each to be opened, with why it did. */
export function Samples({ zone, asked, outcome: { stream, samples } }: Props) {
  const [shown, setShown] = useState<Told>();
  if (samples.first.length === 0) return null;
  return (
    <>
      <Rows title={samples.last.length === 0 ? "What matched" : "The first that matched"} samples={samples.first} onOpen={setShown} />
      {samples.last.length > 0 && <Rows title="The last that matched" samples={samples.last} onOpen={setShown} />}
      <Side of={shown} title={({ sequence }) => `${stream} ${whole(sequence)}`} onClose={() => setShown(undefined)}>
        {({ sequence }) => (
          <EventDetail
            zone={zone}
            stream={stream}
            sequence={sequence}
            top={<ExplainedDraft zone={zone} asked={asked} stream={stream} sequence={sequence} />}
          />
        )}
      </Side>
    </>
  );
}

function Rows({ title, samples, onOpen }: { title: string; samples: readonly Sample[]; onOpen: (event: Told) => void }) {
  return (
    <section aria-label={title}>
      <Text size="sm" c="dimmed" mb={4}>
        {title}
      </Text>
      <Paper withBorder bg="var(--card)" component="ul" className={classes.list}>
        {samples.map((sample) => (
          <li key={sample.sequence} className={classes.row}>
            <EventRow frame={told(sample)} onOpen={onOpen} />
          </li>
        ))}
      </Paper>
    </section>
  );
}

function told(sample: Sample): Told {
  return { ...sample, prev: sample.sequence - 1, liveness: "playback" };
}
