import { visible } from "../../parts/text";
import classes from "./ExplainedTree.module.css";
import type { Part } from "./explain";
import { Outcome } from "./Outcome";

/** A filter's tree on one event: each part's evaluated value and outcome. The deciding parts are emphasised. */
export function ExplainedTree({ tree }: { tree: Part }) {
  return (
    <ul className={classes.tree} aria-label="The filter, part by part">
      <Branch part={tree} alone={tree.parts.length === 0} />
    </ul>
  );
}

function Branch({ part, alone }: { part: Part; alone: boolean }) {
  const { op, predicate, held, decides, why, parts } = part;
  const leaf = parts.length === 0;
  return (
    <li className={classes.part} data-decides={decides}>
      <Outcome held={held} about={leaf ? visible(why) : undefined}>
        {leaf ? <code className={classes.code}>{visible(predicate)}</code> : <span className={classes.join}>{joined(op, part.why)}</span>}
        {leaf && decides && !alone && <span className={classes.decides}>decides</span>}
      </Outcome>
      {!leaf && (
        <ul className={classes.parts}>
          {parts.map((one, index) => (
            // a part has no identity except its index
            <Branch key={index} part={one} alone={false} />
          ))}
        </ul>
      )}
    </li>
  );
}

function joined(op: string, why: string): string {
  if (op === "and") return `all of these (${why})`;
  if (op === "or") return `one of these (${why})`;
  return op === "not" ? "the opposite of this" : why;
}
