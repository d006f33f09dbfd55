import { Anchor, Group, Text, Title } from "@mantine/core";
import { Link } from "react-router";

import { pathIn } from "../../api/zone";
import type { Column } from "../../parts/DataTable";
import { Empty } from "../../parts/Empty";
import { Listed } from "../../parts/Listed";
import { Moment } from "../../parts/Moment";
import { State } from "../../parts/State";
import { whole } from "../../parts/text";
import { type Claim, type Holder, useClaims } from "./sessions";

/** The events in flight of a session, or of a session group whose members share. */
export function Claims({ zone, holder }: { zone: string; holder: Holder }) {
  return (
    <section>
      <Title order={2}>Events in flight</Title>
      <Text size="sm" c="dimmed" mb="xs">
        Events that were handed out to pulls, or to members that share, and are not acknowledged. When its time is over, an event is handed out again.
      </Text>
      <Listed
        list={useClaims(zone, holder)}
        label={`Events in flight of the ${holder.of}`}
        columns={columnsIn(zone)}
        keyOf={({ id }) => String(id)}
        minWidth={560}
        empty={<Empty title="No events in flight" about="Everything that was handed out is acknowledged." />}
      />
    </section>
  );
}

const columnsIn = (zone: string): Column<Claim>[] => [
  {
    title: "Stream",
    cell: ({ stream }) => (
      <Anchor component={Link} to={pathIn(zone, `streams/${encodeURIComponent(stream)}/events`)} size="sm">
        {stream}
      </Anchor>
    ),
    width: 200,
  },
  { title: "Sequence", cell: ({ sequence }) => whole(sequence), right: true },
  { title: "Attempt", cell: ({ attempt }) => whole(attempt), right: true },
  { title: "Holder", cell: ({ holder }) => holder },
  { title: "Until", cell: ({ claimed_until: at }) => <Until at={at} /> },
];

const isOver = (at: string) => Date.parse(at) < Date.now();

function Until({ at }: { at: string }) {
  return (
    <Group gap={4} wrap="nowrap">
      <Moment at={at} />
      {isOver(at) && <State state="waiting" label="over" />}
    </Group>
  );
}
