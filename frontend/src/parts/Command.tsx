import { CopyIcon } from "./CopyIcon";
import classes from "./Command.module.css";

/** Lines for a shell, to be copied whole. */
export function Command({ text }: { text: string }) {
  return (
    <div className={classes.frame}>
      <pre className={classes.text} tabIndex={0} aria-label="Commands">
        {text}
      </pre>
      <div className={classes.copy}>
        <CopyIcon text={text} label="Copy the commands" />
      </div>
    </div>
  );
}
