import type { ReactNode } from "react";

import classes from "./Block.module.css";
import { CopyIcon } from "./CopyIcon";

interface Props {
  text: string; // what is copied
  label: string;
  copy: string; // the copy button's name
  wraps?: boolean;
  children?: ReactNode; // the text as it is shown
}

/** Text of a fixed width, to be read, scrolled and copied whole. */
export function Block({ text, label, copy, wraps = false, children = text }: Props) {
  return (
    <div className={classes.frame}>
      <pre className={classes.text} data-wraps={wraps} tabIndex={0} aria-label={label}>
        {children}
      </pre>
      <div className={classes.copy}>
        <CopyIcon text={text} label={copy} />
      </div>
    </div>
  );
}
