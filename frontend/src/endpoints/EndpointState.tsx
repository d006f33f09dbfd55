import { State } from "../parts/State";
import type { Endpoint } from "./endpoints";

/** Whether the hub calls it, and if not, why. */
export function EndpointState({ endpoint: { enabled, reason } }: { endpoint: Endpoint }) {
  if (enabled) return <State state="enabled" />;
  return <State state="disabled" label={reason === "gone" ? "disabled: it answered 410" : "disabled"} />;
}
