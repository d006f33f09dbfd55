import { State } from "../../parts/State";
import type { Connector } from "./connectors";

const TONES = { starting: "starting", running: "ok", retrying: "degraded", stopped: "failed", paused: "paused" };

export function ConnectorState({ state }: { state: Connector["state"] }) {
  return <State state={TONES[state]} label={state} />;
}
