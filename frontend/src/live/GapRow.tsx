import { IconAlertTriangle } from "@tabler/icons-react";

import { whole } from "../parts/numbers";
import type { GapFrame } from "./frames";
import classes from "./GapRow.module.css";

/** Said where the missing events would be. */
export function GapRow({ gap }: { gap: GapFrame }) {
  return (
    <div className={classes.row}>
      <IconAlertTriangle size={16} aria-hidden />
      Gap: what was asked for is no longer held. It goes on with sequence {whole(gap.first_available.sequence)}.
    </div>
  );
}
