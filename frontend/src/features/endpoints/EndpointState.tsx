import { Text } from "@mantine/core";

import { Moment } from "../../parts/Moment";
import { State } from "../../parts/State";
import { type Endpoint, outcomeOf } from "./endpoints";

/** The state of an endpoint: disabled, failing, or healthy. */
export function EndpointState({ endpoint: { enabled, reason, health } }: { endpoint: Endpoint }) {
  if (!enabled) return <State state="disabled" label={reason === "gone" ? "disabled: it answered 410" : "disabled"} />;
  if (health.state === "failing") return <State state="failing" label={`failing: ${outcomeOf(health)}`} />;
  return <State state={health.state} />;
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
