import { Group } from "@mantine/core";

import { State } from "../../parts/State";
import { capital, whole } from "../../parts/text";
import { type Component, LABELS, type Overview } from "./readings";

/** The status of each component of the hub; forwarders and workers are counted. */
export function Health({ overview: { health, processes } }: { overview: Overview }) {
  if (health === null) return null;
  const counts: Record<string, string> = {
    forwarders: counted(processes.forwarders, "forwarder"),
    workers: counted(processes.workers, "worker"),
  };
  return (
    <Group gap="xs" role="status" aria-label="Health">
      {health.components.map((component) => (
        <State key={component.name} state={component.status} label={labelOf(component, counts)} />
      ))}
    </Group>
  );
}

function labelOf({ name, status }: Component, counts: Record<string, string>): string {
  const label = LABELS[name] ?? capital(name);
  return status === "ok" ? (counts[name] ?? `${label} ok`) : `${label} ${status}`;
}

function counted(count: number, what: string): string {
  return `${whole(count)} ${what}${count === 1 ? "" : "s"}`;
}
