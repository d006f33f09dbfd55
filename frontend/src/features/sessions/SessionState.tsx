import { Group } from "@mantine/core";

import { State } from "../../parts/State";

interface Props {
  suspended: boolean;
  disconnected: boolean;
}

/** Whether a session, or a session group, is suspended or disconnected. */
export function SessionState({ suspended, disconnected }: Props) {
  if (!suspended && !disconnected) return <State state="enabled" label="active" />;
  return (
    <Group gap={4} wrap="nowrap">
      {suspended && <State state="held" label="suspended" />}
      {disconnected && <State state="paused" label="disconnected" />}
    </Group>
  );
}
