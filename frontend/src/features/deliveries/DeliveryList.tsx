import { Text } from "@mantine/core";

import { itemsOf } from "../../api/pages";
import { outcomeOf } from "../endpoints/endpoints";
import type { Column } from "../../parts/DataTable";
import { Empty } from "../../parts/Empty";
import { Listed } from "../../parts/Listed";
import { Moment } from "../../parts/Moment";
import { More } from "../../parts/More";
import { State } from "../../parts/State";
import { stateText, whole } from "../../parts/text";
import { type Delivery, type DeliveryFilter, SELECTING, useDeliveries } from "./deliveries";

const COLUMNS: Column<Delivery>[] = [
  { title: "Event", cell: ({ stream, sequence }) => `${stream} ${whole(sequence)}` },
  { title: "Endpoint", cell: ({ endpoint }) => endpoint },
  { title: "State", cell: ({ state }) => <State state={state} /> },
  { title: "Failed with", cell: ({ last_outcome: outcome, last_status: status }) => (outcome === null ? <None /> : outcomeOf({ outcome, status })) },
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
  const list = useDeliveries(zone, filter);
  if (list.isSuccess && list.hasNextPage && itemsOf(list.data).length === 0) {
    return (
      <Empty title="No match among the newest deliveries" about="Each page examines a bounded number of deliveries. Show more examines older ones.">
        <More {...list} />
      </Empty>
    );
  }
  return (
    <Listed
      list={list}
      label="Deliveries"
      columns={COLUMNS}
      keyOf={({ id }) => id}
      nameOf={({ stream, sequence }) => `Delivery of ${stream} ${whole(sequence)}`}
      onOpen={({ id }) => onOpen(id)}
      minWidth={900}
      empty={<Nothing filter={filter} />}
    />
  );
}

function Nothing({ filter }: { filter: DeliveryFilter }) {
  if (SELECTING.some((name) => filter[name] !== undefined)) return <Empty title="No matching deliveries" about="Remove a filter to see more." />;
  return (
    <Empty
      title={filter.state === undefined ? "No deliveries" : `No ${stateText(filter.state)} deliveries`}
      about="Deliveries appear here as soon as an event matches a registration with a callback, the newest first."
    />
  );
}

function When({ at }: { at: string | null }) {
  return at === null ? <None /> : <Moment at={at} />;
}

function None() {
  return (
    <Text span size="sm" c="dimmed" aria-label="none">
      –
    </Text>
  );
}
