import { Group } from "@mantine/core";

import { State } from "../../parts/State";
import type { Run } from "./types";
import { VERDICTS } from "./words";

/** How it ended, or that it has not; of one that judged something, its verdict too. */
export function RunState({ run: { state, verdict } }: { run: Run }) {
  return (
    <Group gap={6} component="span" wrap="nowrap">
      <State state={state === "waiting" ? "queued" : state} label={state} />
      {state === "completed" && verdict !== "" && <State state={verdict} label={VERDICTS[verdict]} />}
    </Group>
  );
}
