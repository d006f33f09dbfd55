import { Group } from "@mantine/core";

import { State } from "../parts/State";
import { capital } from "../parts/text";
import type { Overview } from "./readings";

/** Whether the hub's parts answer; `stale`: the last reading failed. */
export function Health({ overview, stale }: { overview: Overview; stale: boolean }) {
  const { checks, processes } = overview;
  const { forwarders } = processes;
  return (
    <Group gap="xs" role="status" aria-label="Health">
      {stale && <State state="away" label="Hub not reached" />}
      {Object.entries(checks).map(([part, state]) => (
        <State key={part} state={state === "ok" ? "ok" : "away"} label={`${capital(part)} ${state}`} />
      ))}
      <State
        state={forwarders > 0 ? "ok" : "away"}
        label={forwarders === 1 ? "1 forwarder" : `${forwarders} forwarders`}
      />
    </Group>
  );
}
