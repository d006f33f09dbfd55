import { Group } from "@mantine/core";

import { State } from "../../parts/State";
import type { Run } from "./types";
import { VERDICTS } from "./words";

/** The state of a run, with its verdict if it has one. */
export function RunState({ run: { state, verdict } }: { run: Run }) {
  return (
    <Group gap={6} component="span" wrap="nowrap">
      <State state={state === "waiting" ? "queued" : state} label={state} />
      {state === "completed" && verdict !== "" && <State state={verdict} label={VERDICTS[verdict]} />}
    </Group>
  );
}
