import classes from "./State.module.css";
import { stateText } from "./text";

const TONES: Record<string, string> = {
  ok: "good",
  sync: "good",
  archived: "busy",
  async: "busy",
  transient: "slow",
  held: "slow",
  low: "slow",
  full: "bad",
  online: "good",
  faulted: "bad",
  enabled: "good",
  delivered: "good",
  live: "good",
  pending: "busy",
  catching_up: "busy",
  connecting: "slow",
  waiting: "slow",
  dead_lettered: "bad",
  failed: "bad",
  away: "bad",
  down: "bad",
  failing: "bad",
  degraded: "slow",
  starting: "slow",
  "not ready": "bad",
  ended: "bad",
  queued: "slow",
  running: "busy",
  paused: "slow",
  completed: "good",
  interrupted: "slow",
  problems: "bad",
  keep: "good",
  compact: "slow",
  archive: "busy",
  drop: "bad",
  dropped: "bad",
  done: "good",
  refused: "slow",
};

interface Props {
  state: string; // decides the colour
  label?: string; // the state in words if not given
}

/** A state as a coloured badge. */
export function State({ state, label = stateText(state) }: Props) {
  return (
    <span className={classes.state} data-tone={TONES[state] ?? "quiet"}>
      {label}
    </span>
  );
}
