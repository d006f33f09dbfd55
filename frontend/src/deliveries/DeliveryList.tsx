import { Paper, Skeleton, Text } from "@mantine/core";

import { itemsOf } from "../api/pages";
import { type Column, DataTable } from "../parts/DataTable";
import { Empty } from "../parts/Empty";
import { Moment } from "../parts/Moment";
import { More } from "../parts/More";
import { ProblemAlert } from "../parts/ProblemAlert";
import { State } from "../parts/State";
import { whole } from "../parts/text";
import { type Delivery, type DeliveryFilter, useDeliveries } from "./deliveries";

const COLUMNS: Column<Delivery>[] = [
  { title: "Event", cell: ({ stream, sequence }) => `${stream} ${whole(sequence)}` },
  { title: "Endpoint", cell: ({ endpoint }) => endpoint },
  { title: "State", cell: ({ state }) => <State state={state} /> },
  { title: "Attempts", right: true, cell: ({ attempts }) => attempts },
  { title: "Next attempt", cell: ({ state, next_attempt_at: at }) => <When at={state === "pending" ? at : null} /> },
  { title: "Created", cell: ({ created_at: at }) => <When at={at} /> },
  { title: "Finished", cell: ({ finished_at: at }) => <When at={at} /> },
];

interface Props {
  zone: string;
  filter: DeliveryFilter;
  onOpen: (delivery: string) => void;
}

export function DeliveryList({ zone, filter, onOpen }: Props) {
  const list = useDeliveries(zone, filter);
  const items = itemsOf(list.data);
  if (list.isError) return <ProblemAlert error={list.error} onRetry={() => void list.refetch()} />;
  if (list.isPending) return <Skeleton h={240} aria-label="Loading" />;
  if (items.length === 0) {
    return (
      <Empty
        title={filter.state === undefined ? "No delivery yet" : `No delivery is ${filter.state}`}
        about="Deliveries appear here as soon as an event matches a registration with a callback, the newest first."
      />
    );
  }
  return (
    <Paper withBorder bg="var(--card)">
      <DataTable
        label="Deliveries"
        items={items}
        columns={COLUMNS}
        keyOf={({ id }) => id}
        nameOf={({ stream, sequence }) => `Delivery of ${stream} ${whole(sequence)}`}
        onOpen={({ id }) => onOpen(id)}
        minWidth={820}
      />
      <More {...list} />
    </Paper>
  );
}

function When({ at }: { at: string | null }) {
  return at === null ? (
    <Text span size="sm" c="dimmed" aria-label="none">
      –
    </Text>
  ) : (
    <Moment at={at} />
  );
}
