import { Button, Group, Paper, Stack, Text } from "@mantine/core";
import { IconArrowUp } from "@tabler/icons-react";
import { useSearchParams } from "react-router";

import { type Faults, isFaulty, numberAt } from "../../api/address";
import { useZone } from "../../api/zone";
import { EventList } from "../listening/EventList";
import type { Wish } from "../events/frames";
import { searchOf, wishOf } from "../listening/wish";
import { WishForm } from "../listening/WishForm";
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

/** What a stream holds, in pages around a place; the place, the filters and the open event are in the address. */
export function EventsTab({ stream }: { stream: string }) {
  const zone = useZone();
  const [search, setSearch] = useSearchParams();
  const faults: Faults = {};
  const wish = wishOf(zone, search, faults, stream);
  const event = numberAt(search, "event", faults);
  return (
    <Stack gap="md">
      <Paper withBorder bg="var(--card)" p="md">
        <WishForm
          key={search.toString()}
          wish={wish}
          faults={faults}
          newest="Newest"
          action="Show"
          onWish={(next) => setSearch(ownSearch(next))}
        />
      </Paper>
      {isFaulty(faults) || wish === undefined ? (
        <FaultAlert faults={faults} search={search} />
      ) : (
        <Pages wish={wish} onOpen={(sequence) => setSearch(opening(search, sequence))} />
      )}
      <Side of={event} title={(sequence) => `${stream} ${whole(sequence)}`} onClose={() => setSearch(opening(search, undefined), { replace: true })}>
        {(sequence) => <EventDetail key={sequence} zone={zone} stream={stream} sequence={sequence} />}
      </Side>
    </Stack>
  );
}

function Pages({ wish, onOpen }: { wish: Wish; onOpen: (sequence: number) => void }) {
  const { rows, oldest, newest, ...list } = useHistory(wish);
  if (list.isPending) return <Loading h={420} />;
  if (list.isError && oldest === undefined) return <ProblemAlert error={list.error} onRetry={() => void list.refetch()} />;
  if (rows.length === 0 && !list.hasNextPage && newest?.head === 0) return <Nothing stream={wish.stream} />;
  return (
    <>
      {list.isError && <ProblemAlert error={list.error} />}
      <Card
        title="Events"
        aside={
          <Group gap="sm">
            <Text size="sm" c="dimmed" className="number">
              {rows.length === 0 ? "none found so far" : `${whole(rows.length)} shown`}
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
              That is the oldest that is held.
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
      about="An event is a POST with a key that may emit here. It gets the next sequence number and stays as long as the policy says:"
      command={emitCurl(stream, { domain: "shop", type: "order.placed", attributes: { total: 99 } })}
    />
  );
}

/** The stream is in the path already. */
function ownSearch(wish: Omit<Wish, "zone">): URLSearchParams {
  const search = searchOf(wish);
  search.delete("stream");
  return search;
}

function opening(search: URLSearchParams, sequence: number | undefined): URLSearchParams {
  const next = new URLSearchParams(search);
  if (sequence === undefined) next.delete("event");
  else next.set("event", String(sequence));
  return next;
}
