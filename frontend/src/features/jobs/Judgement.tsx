import { IconCircleCheck, IconCircleX, IconInfoCircle } from "@tabler/icons-react";

import classes from "./Judgement.module.css";
import type { Run } from "./types";

const ICONS = { ok: IconCircleCheck, problems: IconCircleX, "": IconInfoCircle };

/** The verdict of a run, if it has one, and its summary. */
export function Judgement({ run: { verdict, summary }, word }: { run: Run; word?: string }) {
  const Icon = ICONS[verdict];
  return (
    <section className={classes.box} data-verdict={verdict} aria-label="Verdict">
      <Icon size={30} stroke={1.6} className={classes.icon} aria-hidden />
      <div>
        {word !== undefined && <h2 className={classes.word}>{word}</h2>}
        <p className={classes.summary}>{summary}</p>
      </div>
    </section>
  );
}
