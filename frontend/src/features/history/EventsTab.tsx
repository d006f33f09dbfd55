import { Button, Group, Paper, Stack, Text } from "@mantine/core";
import { IconArrowUp } from "@tabler/icons-react";
import { useSearchParams } from "react-router";

import { type Faults, isFaulty, numberAt } from "../../api/address";
import { useZone } from "../../api/zone";
import { EventList } from "../listening/EventList";
import type { ListenRequest } from "../events/frames";
import { searchOf, listenRequestOf } from "../listening/request";
import { ListenForm } from "../listening/ListenForm";
import { Card } from "../../parts/Card";
import { Empty } from "../../parts/Empty";
import { FaultAlert } from "../../parts/FaultAlert";
import { Loading } from "../../parts/Loading";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { Side } from "../../parts/Side";
import { whole } from "../../parts/text";
import { emitCurl } from "../events/curl";
import { EventDetail } from "../eventDetail/EventDetail";
import { useHistory } from "./history";

/** Pages of a stream's retained events around a position; position, filters and the open event are in the address. */
export function EventsTab({ stream }: { stream: string }) {
  const zone = useZone();
  const [search, setSearch] = useSearchParams();
  const faults: Faults = {};
  const request = listenRequestOf(zone, search, faults, stream);
  const event = numberAt(search, "event", faults);
  return (
    <Stack gap="md">
      <Paper withBorder bg="var(--card)" p="md">
        <ListenForm
          key={search.toString()}
          request={request}
          faults={faults}
          newest="Newest"
          action="Show"
          onRequest={(next) => setSearch(ownSearch(next))}
        />
      </Paper>
      {isFaulty(faults) || request === undefined ? (
        <FaultAlert faults={faults} search={search} />
      ) : (
        <Pages request={request} onOpen={(sequence) => setSearch(opening(search, sequence))} />
      )}
      <Side of={event} title={(sequence) => `${stream} ${whole(sequence)}`} onClose={() => setSearch(opening(search, undefined), { replace: true })}>
        {(sequence) => <EventDetail key={sequence} zone={zone} stream={stream} sequence={sequence} />}
      </Side>
    </Stack>
  );
}

function Pages({ request, onOpen }: { request: ListenRequest; onOpen: (sequence: number) => void }) {
  const { rows, oldest, newest, ...list } = useHistory(request);
  if (list.isPending) return <Loading h={420} />;
  if (list.isError && oldest === undefined) return <ProblemAlert error={list.error} onRetry={() => void list.refetch()} />;
  if (rows.length === 0 && !list.hasNextPage && newest?.head === 0) return <Nothing stream={request.stream} />;
  return (
    <>
      {list.isError && <ProblemAlert error={list.error} />}
      <Card
        title="Events"
        aside={
          <Group gap="sm">
            <Text size="sm" c="dimmed" className="number">
              {rows.length === 0 ? "0 shown" : `${whole(rows.length)} shown`}
              {newest !== undefined && ` of ${whole(newest.first)} to ${whole(newest.head)}`}
            </Text>
            <Button
              size="compact-sm"
              variant="default"
              leftSection={<IconArrowUp size={14} />}
              loading={list.isFetchingPreviousPage}
              onClick={() => void list.fetchPreviousPage()}
            >
              Newer
            </Button>
          </Group>
        }
      >
        <EventList
          rows={rows.map((frame) => ({ key: `${frame.segment} ${frame.sequence}`, frame }))}
          onOpen={({ sequence }) => onOpen(sequence)}
        />
        <Group justify="center" p="sm">
          {list.hasNextPage ? (
            <Button variant="default" loading={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
              Older
            </Button>
          ) : (
            <Text size="sm" c="dimmed">
              Oldest retained event reached.
            </Text>
          )}
        </Group>
      </Card>
    </>
  );
}

function Nothing({ stream }: { stream: string }) {
  return (
    <Empty
      title="No event yet"
      about="An event is a POST with a key that may emit here. It gets the next sequence number and is retained by the stream's policy:"
      command={emitCurl(stream, { domain: "shop", type: "order.placed", attributes: { total: 99 } })}
    />
  );
}

/** The stream is in the path already. */
function ownSearch(request: Omit<ListenRequest, "zone">): URLSearchParams {
  const search = searchOf(request);
  search.delete("stream");
  return search;
}

function opening(search: URLSearchParams, sequence: number | undefined): URLSearchParams {
  const next = new URLSearchParams(search);
  if (sequence === undefined) next.delete("event");
  else next.set("event", String(sequence));
  return next;
}
