import { Alert, Button, Group, Text } from "@mantine/core";
import { IconPlayerPause, IconPlayerPlay, IconTrash } from "@tabler/icons-react";
import { useState, useSyncExternalStore } from "react";

import { EventDetail } from "../eventDetail/EventDetail";
import { Card } from "../../parts/Card";
import { Empty } from "../../parts/Empty";
import { Side } from "../../parts/Side";
import { State } from "../../parts/State";
import { whole } from "../../parts/text";
import { EventList } from "./EventList";
import type { Link } from "./feed";
import type { DeliveredEvent, ListenRequest } from "../events/frames";
import { LiveRows } from "./rows";

const LABELS: Record<Link["kind"], string> = {
  connecting: "Connecting",
  catching_up: "Catching up",
  live: "Live",
  paused: "Paused",
  waiting: "Waiting",
  ended: "Ended",
};

/** One listener with its events. */
export function LiveView({ request }: { request: ListenRequest }) {
  const [rows] = useState(() => new LiveRows(request));
  const live = useSyncExternalStore(rows.subscribe, rows.read);
  const [opened, setOpened] = useState<DeliveredEvent>();
  const { link } = live;
  const paused = link.kind === "paused";

  return (
    <>
      {"reason" in link && (
        <Alert color={link.kind === "ended" ? "red" : "yellow"} variant="light" role="status">
          {link.reason}
        </Alert>
      )}
      <Card
        title={request.stream}
        aside={
          <Group gap="xs">
            <Text size="sm" c="dimmed" className="number">
              {whole(live.received)} received
              {live.dropped > 0 && `, the newest ${whole(live.rows.length)} shown`}
            </Text>
            <State state={link.kind} label={LABELS[link.kind]} />
            <Button
              size="compact-sm"
              variant="default"
              disabled={link.kind === "ended"}
              leftSection={paused ? <IconPlayerPlay size={14} /> : <IconPlayerPause size={14} />}
              onClick={() => (paused ? rows.resume() : rows.pause())}
            >
              {paused ? "Resume" : "Pause"}
            </Button>
            <Button size="compact-sm" variant="default" leftSection={<IconTrash size={14} />} onClick={() => rows.clear()}>
              Clear
            </Button>
          </Group>
        }
      >
        <EventList rows={live.rows} onOpen={setOpened} />
      </Card>
      {live.received === 0 && link.kind === "live" && <Waiting request={request} />}
      <Side of={opened} title={({ sequence }) => `${request.stream} ${whole(sequence)}`} onClose={() => setOpened(undefined)}>
        {(frame) => <EventDetail zone={request.zone} stream={request.stream} sequence={frame.sequence} frame={frame} />}
      </Side>
    </>
  );
}

function Waiting({ request }: { request: ListenRequest }) {
  return (
    <Empty
      title="Listening: no event received yet"
      about="Events appended from now on appear here. To show stored events, start from the oldest. To append one event:"
      command={`curl ${location.origin}/v1/streams/${request.stream}/events -H "Authorization: Bearer $KEY" \\
     --json '{"domain": "${request.domain ?? "shop"}", "type": "${request.type ?? "order.placed"}", "attributes": ${JSON.stringify(request.attributes)}}'`}
    />
  );
}
