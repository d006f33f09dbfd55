import { Anchor, Text, Title } from "@mantine/core";
import { Link } from "react-router";

import { pathIn } from "../../api/zone";
import type { Column } from "../../parts/DataTable";
import { Empty } from "../../parts/Empty";
import { Listed } from "../../parts/Listed";
import { Moment } from "../../parts/Moment";
import { whole } from "../../parts/text";
import { type Holder, type Position, type Session, usePositions } from "./sessions";

/** The streams of a consumer session, with what it has acknowledged in each. */
export function Positions({ zone, session }: { zone: string; session: Session }) {
  return (
    <section>
      <Title order={2}>Streams</Title>
      {session.delivery?.quality === "best_effort" ? (
        <Text size="sm" c="dimmed">
          Best-effort delivery has no positions: a connection starts at the end of the streams.
        </Text>
      ) : (
        <>
          <Text size="sm" c="dimmed" mb="xs">
            A connection continues after the acknowledged events. The lag counts all later events of the stream, whether they match or not.
          </Text>
          <Listing
            zone={zone}
            holder={{ of: "session", id: session.id }}
            about="A session has a position in each stream of its registrations, and of those of its group unless the members share."
          />
        </>
      )}
    </section>
  );
}

/** The streams of a session group whose members share, with what they have acknowledged in each. */
export function GroupPositions({ zone, id }: { zone: string; id: number }) {
  return (
    <section>
      <Title order={2}>Streams</Title>
      <Text size="sm" c="dimmed" mb="xs">
        All members have one position. The lag counts all later events of the stream, whether they match or not.
      </Text>
      <Listing zone={zone} holder={{ of: "session group", id }} about="A group has a position in each stream of its registrations." />
    </section>
  );
}

function Listing({ zone, holder, about }: { zone: string; holder: Holder; about: string }) {
  return (
    <Listed
      list={usePositions(zone, holder)}
      label={`Streams of the ${holder.of}`}
      columns={columnsIn(zone)}
      keyOf={({ stream }) => stream}
      minWidth={560}
      empty={<Empty title="No streams" about={about} />}
    />
  );
}

const columnsIn = (zone: string): Column<Position>[] => [
  {
    title: "Stream",
    cell: ({ stream }) => (
      <Anchor component={Link} to={pathIn(zone, `streams/${encodeURIComponent(stream)}/events`)} size="sm">
        {stream}
      </Anchor>
    ),
    width: 200,
  },
  {
    title: "Acknowledged through",
    cell: ({ cursor, acknowledged }) => (acknowledged.length === 0 ? whole(cursor.sequence) : `${whole(cursor.sequence)}, and ${whole(acknowledged.length)} later`),
    right: true,
  },
  { title: "Last sequence", cell: ({ last }) => whole(last), right: true },
  { title: "Lag", cell: ({ lag }) => whole(lag), right: true },
  { title: "Saved", cell: ({ saved_at: at }) => <Moment at={at} /> },
];
