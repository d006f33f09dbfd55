import { State } from "../../parts/State";
import type { Pattern } from "./patterns";

const STATES = { running: "running", ended: "done", suspended: "paused", stopped: "failed" } as const;

export function PatternState({ status }: Pick<Pattern, "status">) {
  return <State state={STATES[status]} label={status} />;
}
