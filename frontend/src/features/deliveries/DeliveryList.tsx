import { Text } from "@mantine/core";

import type { Column } from "../../parts/DataTable";
import { Empty } from "../../parts/Empty";
import { Listed } from "../../parts/Listed";
import { Moment } from "../../parts/Moment";
import { State } from "../../parts/State";
import { stateText, whole } from "../../parts/text";
import { type Delivery, type DeliveryFilter, useDeliveries } from "./deliveries";

const COLUMNS: Column<Delivery>[] = [
  { title: "Event", cell: ({ stream, sequence }) => `${stream} ${whole(sequence)}` },
  { title: "Endpoint", cell: ({ endpoint }) => endpoint },
  { title: "State", cell: ({ state }) => <State state={state} /> },
  { title: "Attempts", right: true, cell: ({ attempt_count }) => attempt_count },
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
  return (
    <Listed
      list={useDeliveries(zone, filter)}
      label="Deliveries"
      columns={COLUMNS}
      keyOf={({ id }) => id}
      nameOf={({ stream, sequence }) => `Delivery of ${stream} ${whole(sequence)}`}
      onOpen={({ id }) => onOpen(id)}
      minWidth={820}
      empty={
        <Empty
          title={filter.state === undefined ? "No delivery yet" : `No delivery is ${stateText(filter.state)}`}
          about="Deliveries appear here as soon as an event matches a registration with a callback, the newest first."
        />
      }
    />
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
