import { IconAlertTriangle } from "@tabler/icons-react";

import { whole } from "../../parts/text";
import classes from "./GapRow.module.css";

/** A row in the position of the missing events. */
export function GapRow({ firstHeld }: { firstHeld: number | undefined }) {
  return (
    <div className={classes.row}>
      <IconAlertTriangle size={16} aria-hidden />
      Gap: the requested events are no longer retained.
      {firstHeld !== undefined && ` The next event has sequence ${whole(firstHeld)}.`}
    </div>
  );
}
