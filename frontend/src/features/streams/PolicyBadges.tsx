import { Group, Tooltip } from "@mantine/core";

import { State } from "../../parts/State";
import type { Policy } from "./streams";

const DURABILITY = {
  sync: "An emit is acknowledged once it is on disk.",
  async: "An emit is acknowledged before it is on disk; a database crash may lose the last events and is reported.",
  transient: "Events are in memory only; the newest are retained.",
};

/** A stream's deviations from the default policy, as badges with tooltips. */
export function PolicyBadges({ policy }: { policy: Policy }) {
  const { durability, keyed, restate, hold, archive, on_lag: lag, undeclared, matching, quench, filterable_data: data } = policy;
  const badges: [string, string, string][] = [[durability, durability, DURABILITY[durability]]];
  if (keyed) badges.push(["keyed", "keyed", "The latest event of each key is retained as its state."]);
  if (restate) badges.push(["restate", "restated", "The state is appended again at each start of the hub."]);
  if (archive) badges.push(["archived", "archive", "Sealed segments are archived and stay readable."]);
  if (hold !== null) badges.push(["held", "on hold", `Nothing may be dropped: ${hold}`]);
  if (lag === "drop") badges.push(["drop", "drops", "Segments are dropped at their limit, even while a cursor needs them."]);
  if (undeclared === "refuse") badges.push(["typed", "typed", "Events of types that are not declared are refused."]);
  if (matching !== "auto") badges.push(["matching", matching, `Registrations are found by the strategy ${matching}.`]);
  if (data) badges.push(["data", "data", "Filters read the JSON body of an event as data.… ."]);
  if (quench) badges.push(["quench", "quenched", "Producers may omit events that match no registration or listener."]);
  return (
    <Group gap={6} wrap="nowrap" component="span">
      {badges.map(([tone, label, about]) => (
        <Tooltip key={label} label={about} multiline maw={320}>
          <span>
            <State state={tone} label={label} />
          </span>
        </Tooltip>
      ))}
    </Group>
  );
}
