import { IconAlertTriangle } from "@tabler/icons-react";

import { whole } from "../../parts/text";
import classes from "./GapRow.module.css";

/** Said where the missing events would be. */
export function GapRow({ firstHeld }: { firstHeld: number | undefined }) {
  return (
    <div className={classes.row}>
      <IconAlertTriangle size={16} aria-hidden />
      Gap: what was asked for is no longer held.
      {firstHeld !== undefined && ` It goes on with sequence ${whole(firstHeld)}.`}
    </div>
  );
}
