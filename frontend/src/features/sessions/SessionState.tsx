import { Group } from "@mantine/core";

import { State } from "../../parts/State";
import type { Session } from "./sessions";

interface Props {
  suspended: boolean;
  disconnected: boolean;
  connected?: boolean; // of a consumer session; a group has no connection of its own
}

/** Whether a session is connected, suspended or disconnected on request. */
export function SessionState({ suspended, disconnected, connected }: Props) {
  return (
    <Group gap={4} wrap="nowrap">
      {suspended && <State state="held" label="suspended" />}
      {disconnected && <State state="paused" label="delivery disabled" />}
      {connected !== undefined && !disconnected && <State state={connected ? "ok" : "quiet"} label={connected ? "connected" : "not connected"} />}
      {connected === undefined && !suspended && !disconnected && <State state="enabled" label="active" />}
    </Group>
  );
}

export function StateOf({ session: { kind, suspended, delivery, connected_at: at } }: { session: Session }) {
  return <SessionState suspended={suspended} disconnected={delivery?.disconnected === true} connected={kind === "consumer" ? at !== null : undefined} />;
}
