import { UnstyledButton } from "@mantine/core";
import { memo } from "react";

import { Moment } from "../../parts/Moment";
import { whole } from "../../parts/text";
import classes from "./EventRow.module.css";
import type { DeliveredEvent } from "./frames";

interface Props {
  frame: DeliveredEvent;
  onOpen: (frame: DeliveredEvent) => void;
}

export const EventRow = memo(function EventRow({ frame, onOpen }: Props) {
  const { event, sequence, appended_at: at } = frame;
  return (
    <UnstyledButton className={classes.row} onClick={() => onOpen(frame)}>
      <span className={classes.sequence}>
        {whole(sequence)}
      </span>
      <span className={classes.time}>
        <Moment at={at} exact />
      </span>
      <span className={classes.kind}>
        {event.domain !== undefined && <span className={classes.domain}>{event.domain}</span>}
        <span>{event.type}</span>
      </span>
      <span className={classes.attributes}>{summary(event.attributes)}</span>
    </UnstyledButton>
  );
});

export function summary(attributes: Record<string, unknown> = {}): string {
  return Object.entries(attributes)
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join("  ");
}
