import { Anchor, Button, Group } from "@mantine/core";
import { IconRepeat } from "@tabler/icons-react";
import { Link } from "react-router";

import { pathIn } from "../../api/zone";
import { type EndedState, isRecoverable } from "../deliveries/deliveries";
import { searchOf } from "../deliveries/search";
import { outcomeOf, useEndpointChoice } from "../endpoints/endpoints";
import type { Column } from "../../parts/DataTable";
import { Empty } from "../../parts/Empty";
import { Listed } from "../../parts/Listed";
import { May } from "../../parts/May";
import { Moment } from "../../parts/Moment";
import { State } from "../../parts/State";
import { stateText, whole } from "../../parts/text";
import { type DeadLetterFilter, type DeadLetterGroup, keyOf, useDeadLetters } from "./deadLetters";

interface Props {
  zone: string;
  filter: DeadLetterFilter;
  onOpen: (delivery: string) => void; // of a sample
}

/** The groups: an endpoint and a cause, with how many deliveries and when. */
export function DeadLetterList({ zone, filter, onOpen }: Props) {
  const state = filter.state ?? "dead_lettered";
  const endpoints = useEndpointChoice(zone, undefined).data?.items;
  const nameOf = (id: number) => [id, endpoints?.find((one) => one.id === id)?.url].filter((one) => one !== undefined).join(" · ");
  return (
    <Listed
      list={useDeadLetters(zone, filter)}
      label="Dead letters"
      columns={[{ title: "Endpoint", cell: ({ endpoint }) => <span title={nameOf(endpoint)}>{nameOf(endpoint)}</span>, width: 240 }, ...columnsOf(zone, filter, state, onOpen)]}
      keyOf={keyOf}
      minWidth={980}
      empty={
        <Empty
          title={`No ${stateText(state)} deliveries`}
          about="A delivery becomes a dead letter when its retry schedule ends without a success, or when an open circuit has withheld it for as long. Dead letters are grouped by endpoint and cause."
        />
      }
    />
  );
}

function columnsOf(zone: string, filter: DeadLetterFilter, state: EndedState, onOpen: (delivery: string) => void): Column<DeadLetterGroup>[] {
  const selection = ({ endpoint, outcome, status }: DeadLetterGroup) => ({ endpoint, state, outcome: outcome ?? undefined, status: status ?? undefined, stream: filter.stream });
  return [
    { title: "Client", cell: ({ client }) => client, width: 140 },
    { title: "Cause", cell: ({ outcome, status }) => <State state={outcome === null ? "untried" : "failed"} label={outcome === null ? "no attempt" : outcomeOf({ outcome, status })} /> },
    {
      title: "Deliveries",
      right: true,
      cell: (group) => (
        <Anchor component={Link} to={`${pathIn(zone, "deliveries")}?${searchOf(selection(group)).toString()}`} size="sm" aria-label={`${whole(group.deliveries)} deliveries: list them`}>
          {whole(group.deliveries)}
        </Anchor>
      ),
    },
    { title: "First", cell: ({ first_at: at }) => <Moment at={at} /> },
    { title: "Last", cell: ({ last_at: at }) => <Moment at={at} /> },
    { title: "Newest", cell: ({ samples }) => <Samples ids={samples} onOpen={onOpen} /> },
    {
      title: "Actions",
      right: true,
      cell: (group) =>
        isRecoverable(state) && (
          <May>
            <Button
              component={Link}
              to={`${pathIn(zone, "replays/new")}?${searchOf({ source: "deliveries", ...selection(group) }).toString()}`}
              size="compact-sm"
              variant="default"
              leftSection={<IconRepeat size={14} />}
              aria-label={`Recover group of endpoint ${group.endpoint}, ${outcomeOf(group) || "no attempt"}`}
            >
              Recover group
            </Button>
          </May>
        ),
    },
  ];
}

function Samples({ ids, onOpen }: { ids: readonly string[]; onOpen: (delivery: string) => void }) {
  return (
    <Group gap={8} wrap="nowrap">
      {ids.slice(0, 3).map((id) => (
        <Anchor key={id} component="button" size="sm" aria-label={`Delivery of sequence ${sequenceOf(id)}`} onClick={() => onOpen(id)}>
          {sequenceOf(id)}
        </Anchor>
      ))}
    </Group>
  );
}

/** The last number of a delivery's id. */
function sequenceOf(id: string): string {
  return whole(Number(id.split(".").at(-1)));
}
