import { ActionIcon, Stack, Tooltip } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { IconDownload } from "@tabler/icons-react";
import { useState } from "react";
import { useSearchParams } from "react-router";

import { itemsOf } from "../../api/pages";
import { Card } from "../../parts/Card";
import { type Column, DataTable } from "../../parts/DataTable";
import { Empty } from "../../parts/Empty";
import { Loading } from "../../parts/Loading";
import { Moment } from "../../parts/Moment";
import { More } from "../../parts/More";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { State } from "../../parts/State";
import { bytes, whole } from "../../parts/text";
import type { Stream } from "../streams/streams";
import { Legend, SegmentPlot } from "./SegmentPlot";
import { canDownload, countOf, download, placeOf, type Segment, sizeOf, useSegments } from "./segments";

const REMOVAL_REASONS: Record<string, string> = {
  age: "older than the retention age",
  size: "beyond the retention size",
  count: "beyond the retention count",
  quota: "the hub's quota was reached",
  disk: "the disk was full",
  continuity: "lost in a crash of the database",
};

/** A stream's segments as a plot and a table; the address may name a chosen one. */
export function SegmentsTab({ zone, stream }: { zone: string; stream: Stream }) {
  const list = useSegments(zone, stream.name);
  const [search] = useSearchParams();
  const [chosen, setChosen] = useState(search.get("segment") ?? undefined);
  const fetching = useMutation({ mutationFn: (segment: Segment) => download(zone, stream.name, segment) });

  if (stream.durability === "transient") {
    return <Empty title="A transient stream has no stored segments" about="Its newest events are in memory only." />;
  }
  if (list.isError && list.data === undefined) return <ProblemAlert error={list.error} onRetry={() => void list.refetch()} />;
  if (list.isPending) return <Loading h={420} />;
  const segments = itemsOf(list.data);
  return (
    <Stack gap="md">
      {fetching.isError && <ProblemAlert error={fetching.error} />}
      <Card title="By size" aside={<Legend />}>
        <SegmentPlot segments={segments} chosen={chosen} onChoose={setChosen} />
      </Card>
      <Card title={chosen === undefined ? "All segments" : "The chosen segment first"}>
        <DataTable
          label="Segments"
          items={arranged(segments, chosen)}
          columns={columnsOf((segment) => fetching.mutate(segment))}
          keyOf={({ uuid }) => uuid}
          markedOf={({ uuid }) => uuid === chosen}
          minWidth={940}
        />
        <More {...list} />
      </Card>
    </Stack>
  );
}

/** Sort segments newest first, with the chosen one on top. */
function arranged(segments: readonly Segment[], chosen: string | undefined): Segment[] {
  const newest = [...segments].reverse();
  return [...newest.filter(({ uuid }) => uuid === chosen), ...newest.filter(({ uuid }) => uuid !== chosen)];
}

function columnsOf(onDownload: (segment: Segment) => void): Column<Segment>[] {
  return [
    { title: "Segment", cell: ({ uuid }) => <span className="mono" title={uuid}>{uuid.slice(0, 8)}</span> },
    { title: "Place", cell: (segment) => <Place segment={segment} /> },
    { title: "First", right: true, cell: ({ first }) => whole(first) },
    { title: "Last", right: true, cell: ({ last, first }) => (last < first ? "–" : whole(last)) },
    { title: "Events", right: true, cell: (segment) => whole(countOf(segment)) },
    { title: "Bytes", right: true, cell: (segment) => bytes(sizeOf(segment)) },
    { title: "Opened", cell: ({ opened_at: at }) => <Moment at={at} /> },
    { title: "Sealed", cell: ({ sealed_at: at }) => (at === null ? "–" : <Moment at={at} />) },
    { title: "Raw", right: true, cell: (segment) => <Download segment={segment} onDownload={onDownload} /> },
  ];
}

function Place({ segment }: { segment: Segment }) {
  const { removal_reason: why, removed_at: at, archived, tier } = segment;
  const label = tier === "live" && archived ? "live, archived" : placeOf(segment);
  const state = <State state={placeOf(segment)} label={label} />;
  if (why === null || at === null) return state;
  return (
    <Tooltip label={`${REMOVAL_REASONS[why] ?? why}, ${at.slice(0, 19).replace("T", " ")} UTC`}>
      <span>
        {state} {tier === "dropped" && why}
      </span>
    </Tooltip>
  );
}

function Download({ segment, onDownload }: { segment: Segment; onDownload: (segment: Segment) => void }) {
  if (!canDownload(segment)) return null;
  const what = segment.tier === "archived" ? "Parquet" : "protobuf";
  return (
    <Tooltip label={`Download as it is stored (${what})`}>
      <ActionIcon
        variant="subtle"
        color="gray"
        aria-label={`Download the segment from ${segment.first} to ${segment.last}`}
        onClick={() => onDownload(segment)}
      >
        <IconDownload size={16} stroke={1.7} />
      </ActionIcon>
    </Tooltip>
  );
}
