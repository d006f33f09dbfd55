import { IconCircleCheck, IconCircleX } from "@tabler/icons-react";
import type { ReactNode } from "react";

import classes from "./Outcome.module.css";

interface Props {
  held: boolean;
  words?: readonly [string, string]; // for held and failed
  about?: ReactNode; // below
  children?: ReactNode;
}

/** One outcome, holds or fails, as an icon, a word and a colour. */
export function Outcome({ held, words: [yes, no] = ["holds", "fails"], about, children }: Props) {
  const Icon = held ? IconCircleCheck : IconCircleX;
  return (
    <div className={classes.row} data-held={held}>
      <Icon size={17} className={classes.icon} aria-hidden />
      <div className={classes.body}>
        <div className={classes.head}>
          <span className={classes.word}>{held ? yes : no}</span> {children}
        </div>
        {about !== undefined && <div className={classes.about}>{about}</div>}
      </div>
    </div>
  );
}
