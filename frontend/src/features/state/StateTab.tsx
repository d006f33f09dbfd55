import { Button, Text } from "@mantine/core";
import { IconRefresh } from "@tabler/icons-react";
import { useSearchParams } from "react-router";

import { itemsOf } from "../../api/pages";
import { emitCurl } from "../events/curl";
import { summary } from "../events/EventRow";
import { Card } from "../../parts/Card";
import { type Column, DataTable } from "../../parts/DataTable";
import { Empty } from "../../parts/Empty";
import { Loading } from "../../parts/Loading";
import { Moment } from "../../parts/Moment";
import { More } from "../../parts/More";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { Side } from "../../parts/Side";
import { whole } from "../../parts/text";
import type { Stream } from "../streams/streams";
import { KeyDetail } from "./KeyDetail";
import { type StateItem, useSnapshot } from "./state";

const COLUMNS: Column<StateItem>[] = [
  { title: "Key", cell: ({ key }) => key },
  { title: "Sequence", right: true, cell: ({ sequence }) => whole(sequence) },
  { title: "Appended", cell: ({ appended_at: at }) => <Moment at={at} /> },
  { title: "Type", cell: ({ event }) => String(event.type) },
  { title: "Attributes", cell: ({ event }) => <span className="mono">{summary(event.attributes as Record<string, unknown>)}</span> },
];

/** The latest event of each key, as of one sequence; the open key is in the address. */
export function StateTab({ zone, stream }: { zone: string; stream: Stream }) {
  const [search, setSearch] = useSearchParams();
  if (!stream.keyed) {
    return <Empty title="This stream has no state" about="A keyed stream retains the latest event of each key when older segments are dropped. A stream is keyed when it is created, or not at all." />;
  }
  return (
    <>
      <Snapshot zone={zone} stream={stream.name} onOpen={(key) => setSearch({ key })} />
      <Side of={search.get("key") ?? undefined} title={(key) => key} onClose={() => setSearch({}, { replace: true })}>
        {(key) => <KeyDetail key={key} zone={zone} stream={stream.name} name={key} />}
      </Side>
    </>
  );
}

function Snapshot({ zone, stream, onOpen }: { zone: string; stream: string; onOpen: (key: string) => void }) {
  const list = useSnapshot(zone, stream);
  if (list.isError) return <ProblemAlert error={list.error} onRetry={() => void list.refetch()} />;
  if (list.isPending) return <Loading h={300} />;
  const items = itemsOf(list.data);
  const at = list.data.pages[0]?.cursor.sequence ?? 0;
  if (items.length === 0) {
    return (
      <Empty
        title="No keys"
        about="An event with a key becomes the state of that key; a tombstone removes it."
        command={emitCurl(stream, { domain: "shop", type: "stock", key: "item-7", attributes: { left: 12 } })}
      />
    );
  }
  return (
    <Card
      title={`As of sequence ${whole(at)}`}
      aside={
        <Button
          size="compact-sm"
          variant="default"
          leftSection={<IconRefresh size={14} />}
          loading={list.isRefetching}
          onClick={() => void list.refetch()}
        >
          Refresh
        </Button>
      }
    >
      <DataTable
        label="State"
        items={items}
        columns={COLUMNS}
        keyOf={({ key }) => key}
        nameOf={({ key }) => `Key ${key}`}
        onOpen={({ key }) => onOpen(key)}
        minWidth={760}
      />
      <More {...list} />
      <Text size="xs" c="dimmed" px="md" pb="sm" pt={6}>
        Later events change these keys; refresh to include them.
      </Text>
    </Card>
  );
}
