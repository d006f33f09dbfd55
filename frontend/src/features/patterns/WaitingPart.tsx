import { List, Text } from "@mantine/core";

import { State } from "../../parts/State";
import type { Part, Position } from "./patterns";

/** A part of a pattern with its status and what it has bound, and its own parts. */
export function WaitingPart({ part }: { part: Part }) {
  const bound = Object.entries(part.bound).map(([name, events]) => `${name} = ${events.map(positionText).join(", ")}`);
  return (
    <List.Item>
      <code>{part.element}</code> <State state={part.status === "matched" ? "ok" : part.status} label={part.status} />
      {part.children.length === 0 && bound.length > 0 && (
        <Text span size="sm" c="dimmed">
          {" "}
          {bound.join("; ")}
        </Text>
      )}
      {part.children.length > 0 && (
        <List ps="lg" listStyleType="none" size="sm">
          {part.children.map((child, index) => (
            <WaitingPart key={index} part={child} />
          ))}
        </List>
      )}
    </List.Item>
  );
}

/** The position of an event in words; of one that a pattern created, its type. */
export function positionText({ order, type, stream, sequence }: Position): string {
  if (sequence === undefined) return type ?? "";
  return stream === undefined ? `event ${order ?? sequence}` : `${stream} ${sequence}`;
}
