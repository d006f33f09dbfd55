import { SegmentedControl } from "@mantine/core";

import { capital, stateText } from "../../parts/text";
import type { DeliveryState } from "./deliveries";
import classes from "./StateChoice.module.css";

const ALL = "all";

interface Props<T extends DeliveryState> {
  states: readonly T[];
  all?: boolean; // whether every state can be chosen
  value: T | undefined;
  faulty?: boolean;
  onChange: (state: T | undefined) => void;
}

/** One state of deliveries, or every one. */
export function StateChoice<T extends DeliveryState>({ states, all = false, value, faulty = false, onChange }: Props<T>) {
  return (
    <SegmentedControl
      aria-label="State"
      className={classes.states}
      classNames={{ control: classes.one, label: classes.state }}
      data={[...(all ? [ALL] : []), ...states].map((one) => ({ value: one, label: capital(stateText(one)) }))}
      value={faulty ? "" : (value ?? ALL)}
      onChange={(chosen) => onChange(states.find((one) => one === chosen))}
    />
  );
}
