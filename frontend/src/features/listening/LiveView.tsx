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
import type { Told, Wish } from "../events/frames";
import { LiveRows } from "./rows";

const LABELS: Record<Link["kind"], string> = {
  connecting: "Connecting",
  catching_up: "Catching up",
  live: "Live",
  paused: "Paused",
  waiting: "Waiting",
  ended: "Ended",
};

/** One listen with its events. */
export function LiveView({ wish }: { wish: Wish }) {
  const [rows] = useState(() => new LiveRows(wish));
  const live = useSyncExternalStore(rows.subscribe, rows.read);
  const [shown, setShown] = useState<Told>();
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
        title={wish.stream}
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
        <EventList rows={live.rows} onOpen={setShown} />
      </Card>
      {live.received === 0 && link.kind === "live" && <Waiting wish={wish} />}
      <Side of={shown} title={({ sequence }) => `${wish.stream} ${whole(sequence)}`} onClose={() => setShown(undefined)}>
        {(frame) => <EventDetail zone={wish.zone} stream={wish.stream} sequence={frame.sequence} frame={frame} />}
      </Side>
    </>
  );
}

function Waiting({ wish }: { wish: Wish }) {
  return (
    <Empty
      title="Listening; nothing has come yet"
      about="What is appended from now on appears here. To see what is stored already, start from the oldest. To append one event:"
      command={`curl ${location.origin}/v1/streams/${wish.stream}/events -H "Authorization: Bearer $KEY" \\
     --json '{"domain": "${wish.domain ?? "shop"}", "type": "${wish.type ?? "order.placed"}", "attributes": ${JSON.stringify(wish.attributes)}}'`}
    />
  );
}
