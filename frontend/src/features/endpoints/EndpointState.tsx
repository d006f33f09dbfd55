import { Text } from "@mantine/core";

import { Moment } from "../../parts/Moment";
import { State } from "../../parts/State";
import { type Endpoint, outcomeOf } from "./endpoints";

/** The state of an endpoint: disabled, failing, or healthy. */
export function EndpointState({ endpoint: { enabled, reason, health } }: { endpoint: Endpoint }) {
  if (!enabled) return <State state="disabled" label={disabledText(reason)} />;
  if (health.state === "failing") return <State state="failing" label={`failing: ${outcomeOf(health)}`} />;
  return <State state={health.state} />;
}

/** Why it is disabled, unless somebody asked for it. */
function disabledText(reason: string | null): string {
  const why: Record<string, string> = {
    gone: "disabled: it answered 410",
    failing: "disabled: it failed for too long",
    unverified: "unverified: the receiver has not agreed",
  };
  return why[reason ?? ""] ?? "disabled";
}

/** The time since which all attempts have failed. */
export function FailingSince({ endpoint: { health } }: { endpoint: Endpoint }) {
  if (health.failing_since !== null) return <Moment at={health.failing_since} />;
  return (
    <Text span size="sm" c="dimmed" aria-label="not failing">
      –
    </Text>
  );
}

/** When the hub deletes it, as a subscription of MCP that is not refreshed. */
export function Expiry({ at }: { at: string | null }) {
  return at === null ? "never" : <Moment at={at} />;
}
