import { type UIEvent, useLayoutEffect, useRef, useState } from "react";

import classes from "./EventList.module.css";
import { EventRow } from "../events/EventRow";
import type { DeliveredEvent } from "../events/frames";
import { GapRow } from "./GapRow";
import type { Row } from "./rows";

const ROW_PX = 40;
const FRAME_PX = 560;
const MARGIN_ROWS = 8; // rendered beyond the visible rows

interface Props {
  rows: readonly Row[]; // newest first
  onOpen: (frame: DeliveredEvent) => void;
}

/** A virtual list: only visible rows are rendered. New rows on top do not move a list that is scrolled down. */
export function EventList({ rows, onOpen }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const newest = rows[0]?.key;
  const before = useRef(newest);

  useLayoutEffect(() => {
    const host = frame.current;
    if (host !== null && host.scrollTop > 0 && before.current !== undefined) {
      const added = rows.findIndex((row) => row.key === before.current);
      host.scrollTop += Math.max(0, added) * ROW_PX;
    }
    before.current = newest;
  }, [newest, rows]);

  const first = Math.max(0, Math.floor(top / ROW_PX) - MARGIN_ROWS);
  const visible = rows.slice(first, first + Math.ceil(FRAME_PX / ROW_PX) + 2 * MARGIN_ROWS);
  return (
    <div
      ref={frame}
      className={classes.frame}
      style={{ maxHeight: FRAME_PX }}
      onScroll={(event: UIEvent<HTMLDivElement>) => setTop(event.currentTarget.scrollTop)}
    >
      <div className={classes.rows} role="list" aria-label="Events, newest first" style={{ height: rows.length * ROW_PX }}>
        {visible.map((row, index) => (
          <div
            key={row.key}
            role="listitem"
            className={classes.row}
            style={{ height: ROW_PX, transform: `translateY(${(first + index) * ROW_PX}px)` }}
          >
            {"gap" in row ? <GapRow firstHeld={row.gap} /> : <EventRow frame={row.frame} onOpen={onOpen} />}
          </div>
        ))}
      </div>
    </div>
  );
}
