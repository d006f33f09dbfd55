import { Button, Paper, Stack, Text, Title } from "@mantine/core";

import { Problem } from "../../api/problem";
import { EventRow } from "../events/EventRow";
import { Facts } from "../../parts/Facts";
import { Json } from "../../parts/Json";
import { Loading } from "../../parts/Loading";
import { Moment } from "../../parts/Moment";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { whole } from "../../parts/text";
import { useNavigate } from "react-router";
import { pathIn } from "../../api/zone";
import classes from "./KeyDetail.module.css";
import { useKey, useKeyHistory } from "./state";

interface Props {
  zone: string;
  stream: string;
  name: string;
}

/** The state of a key and its earlier events. */
export function KeyDetail({ zone, stream, name }: Props) {
  const now = useKey(zone, stream, name);
  return (
    <Stack gap="lg">
      {now.isPending && <Loading h={160} />}
      {now.isError && <Gone error={now.error} onRetry={() => void now.refetch()} />}
      {now.data !== undefined && (
        <>
          <Facts
            facts={[
              ["Sequence", whole(now.data.sequence)],
              ["Appended", <Moment key="at" at={now.data.appended_at} />],
              ["Segment", <span key="segment" className="mono">{now.data.segment}</span>],
            ]}
          />
          <Json value={now.data.event} label="the state" />
        </>
      )}
      <KeyHistory zone={zone} stream={stream} name={name} />
    </Stack>
  );
}

function Gone({ error, onRetry }: { error: unknown; onRetry: () => void }) {
  if (!(error instanceof Problem && error.status === 404)) return <ProblemAlert error={error} onRetry={onRetry} />;
  return (
    <Text size="sm" c="dimmed">
      The key has no state: it was deleted by a tombstone, or never had an event.
    </Text>
  );
}

/** The retained events of a key, newest first. */
export function KeyHistory({ zone, stream, name }: Props) {
  const navigate = useNavigate();
  const list = useKeyHistory(zone, stream, name);
  const pages = list.data?.pages ?? [];
  const events = pages.flatMap((page) => page.events);
  const back = pages.at(-1)?.cursor.sequence;
  return (
    <section>
      <Title order={2} mb="xs">
        History
      </Title>
      {list.isError && <ProblemAlert error={list.error} onRetry={() => void list.refetch()} />}
      {events.length > 0 && (
        <Paper withBorder className={classes.list} role="list" aria-label={`Events of ${name}`}>
          {events.map((frame) => (
            <div key={frame.sequence} role="listitem" className={classes.row}>
              <EventRow
                frame={frame}
                onOpen={({ sequence }) => void navigate(`${pathIn(zone, `streams/${encodeURIComponent(stream)}/events`)}?event=${sequence}`)}
              />
            </div>
          ))}
        </Paper>
      )}
      <Text size="sm" c="dimmed" mt="xs" className="number">
        {back === undefined ? " " : list.hasNextPage ? `Searched back to sequence ${whole(back)}.` : "All retained events were searched."}
      </Text>
      {list.hasNextPage && (
        <Button mt="xs" variant="default" loading={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          Search further back
        </Button>
      )}
    </section>
  );
}
