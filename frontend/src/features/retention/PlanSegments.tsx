import { Group, Select, Text } from "@mantine/core";
import { useSearchParams } from "react-router";

import { SegmentLink, StreamLink } from "../streams/links";
import { Card } from "../../parts/Card";
import { type Column, DataTable } from "../../parts/DataTable";
import { State } from "../../parts/State";
import { bytes, capital, whole } from "../../parts/text";
import { ACTIONS, type Plan, type Planned, reasonOf } from "./plan";

/** The planned action of each segment, with its reason; the filters are part of the address. */
export function PlanSegments({ zone, plan }: { zone: string; plan: Plan }) {
  const [search, setSearch] = useSearchParams();
  const action = search.get("action");
  const stream = search.get("stream");
  const shown = plan.segments.filter((one) => (action === null || one.action === action) && (stream === null || one.stream === stream));
  const choose = (name: string, value: string | null) => {
    const next = new URLSearchParams(search);
    if (value === null) next.delete(name);
    else next.set(name, value);
    setSearch(next, { replace: true });
  };
  const choices = (
    <Group gap="xs">
      <Select
        aria-label="Action"
        size="xs"
        placeholder="all actions"
        data={ACTIONS.map((value) => ({ value, label: `${capital(value)} (${whole(plan.actions[value].segments)})` }))}
        value={action}
        onChange={(value) => choose("action", value)}
        clearable
        clearButtonProps={{ "aria-label": "All actions" }}
        w={150}
      />
      <Select
        aria-label="Stream"
        size="xs"
        placeholder="all streams"
        data={[...new Set(plan.segments.map((one) => one.stream))].sort()}
        value={stream}
        onChange={(value) => choose("stream", value)}
        clearable
        clearButtonProps={{ "aria-label": "All streams" }}
        searchable
        w={170}
      />
    </Group>
  );
  return (
    <Card title="Segments" aside={choices}>
      {shown.length === 0 ? (
        <Text size="sm" c="dimmed" p="md" pt={0}>
          {plan.segments.length === 0 ? "Segments in the database: 0." : "No matching segments."}
        </Text>
      ) : (
        <DataTable label="Segments" items={shown} columns={columnsOf(zone)} keyOf={({ segment }) => segment} minWidth={940} />
      )}
      {plan.segment_count > plan.segments.length && (
        <Text size="sm" c="dimmed" p="md">
          {whole(plan.segments.length)} of {whole(plan.segment_count)} segments, those that something happens to first. The files below have all.
        </Text>
      )}
    </Card>
  );
}

function columnsOf(own: string): Column<Planned>[] {
  return [
    { title: "Action", cell: ({ action }) => <State state={action} /> },
    { title: "Stream", cell: ({ zone, stream }) => <StreamLink zone={zone || own} stream={stream} /> },
    { title: "Segment", cell: ({ zone, stream, segment }) => <SegmentLink zone={zone || own} stream={stream} segment={segment} /> },
    { title: "First", right: true, cell: ({ first }) => whole(first) },
    { title: "Last", right: true, cell: ({ last, first }) => (last < first ? "–" : whole(last)) },
    { title: "Events", right: true, cell: ({ events }) => whole(events) },
    { title: "Bytes", right: true, cell: ({ bytes: size }) => bytes(size) },
    { title: "Now", cell: ({ tier }) => <State state="live" label={tier} /> },
    { title: "Reason", cell: ({ reason }) => <span style={{ whiteSpace: "normal" }}>{reasonOf(reason)}</span>, width: 420 },
  ];
}
