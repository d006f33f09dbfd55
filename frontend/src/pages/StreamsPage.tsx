import { Anchor, Text } from "@mantine/core";
import { Link, useNavigate } from "react-router";

import { pathIn, useZone } from "../api/zone";
import type { Column } from "../parts/DataTable";
import { Empty } from "../parts/Empty";
import { Listed } from "../parts/Listed";
import { New } from "../parts/New";
import { PageHeader } from "../parts/PageHeader";
import { bytes, whole } from "../parts/text";
import { useStreamSizes } from "../features/storage/storage";
import { NewStream } from "../features/streams/NewStream";
import { policyOf, retention } from "../features/streams/policy";
import { PolicyBadges } from "../features/streams/PolicyBadges";
import { type Stream, useStreams } from "../features/streams/streams";

export function StreamsPage() {
  const zone = useZone();
  const navigate = useNavigate();
  const list = useStreams(zone);
  const sizes = useStreamSizes(zone);
  const to = (name: string) => pathIn(zone, `streams/${encodeURIComponent(name)}`);
  const columns: Column<Stream>[] = [
    { title: "Stream", cell: ({ name }) => <Anchor component={Link} to={to(name)} size="sm" fw={600}>{name}</Anchor> },
    { title: "Policy", cell: (stream) => <PolicyBadges policy={policyOf(stream)} /> },
    { title: "Retention", cell: (stream) => retention(policyOf(stream)) },
    { title: "First stored", right: true, cell: ({ first, last }) => orNothing(last === 0 ? null : first, whole) },
    { title: "Last sequence", right: true, cell: ({ last }) => orNothing(last, whole) },
    { title: "Segments", right: true, cell: ({ name }) => orNothing(sizes?.get(name)?.segments, whole) },
    { title: "Bytes", right: true, cell: ({ name }) => orNothing(sizes?.get(name)?.bytes, bytes) },
  ];
  return (
    <>
      <PageHeader title="Streams" about="Ordered logs of events, each with a policy of its own.">
        <New label="New stream" size="xl">
          {(made) => (
            <NewStream
              zone={zone}
              onMade={(name) => {
                made();
                void navigate(to(name));
              }}
            />
          )}
        </New>
      </PageHeader>
      <Listed
        list={list}
        label="Streams"
        columns={columns}
        keyOf={({ name }) => name}
        minWidth={900}
        empty={<Empty title="No stream" about="A stream is a log of events in one order." />}
      />
      {list.data?.pages[0]?.items.length === 1 && <FirstStream />}
    </>
  );
}

function FirstStream() {
  return (
    <Text size="sm" c="dimmed" mt="md">
      <b>system</b> is the hub's own: it records changes to this zone. Create a stream for your own events, and emit the first event
      with the command on its page.
    </Text>
  );
}

function orNothing(value: number | null | undefined, format: (value: number) => string) {
  if (value != null) return format(value);
  return (
    <Text span c="dimmed" aria-label="none">
      –
    </Text>
  );
}
