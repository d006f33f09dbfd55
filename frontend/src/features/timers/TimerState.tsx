import { State } from "../../parts/State";

export function TimerState({ suspended }: { suspended: boolean }) {
  return suspended ? <State state="paused" label="suspended" /> : <State state="running" label="active" />;
}
