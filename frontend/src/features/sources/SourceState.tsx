import { State } from "../../parts/State";

export function SourceState({ enabled }: { enabled: boolean }) {
  return enabled ? <State state="enabled" label="enabled" /> : <State state="paused" label="disabled" />;
}
