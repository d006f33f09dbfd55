import type { ReactNode } from "react";

import classes from "./Block.module.css";
import { CopyIcon } from "./CopyIcon";

interface Props {
  text: string; // copied by the button
  label: string;
  copy: string; // the copy button's name
  wraps?: boolean;
  children?: ReactNode; // rendered instead of the text
}

/** Monospaced text with a copy button. */
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
