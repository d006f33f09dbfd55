import { List, Text } from "@mantine/core";

import { State } from "../../parts/State";
import { boundText } from "./outputText";
import type { Part } from "./patterns";

/** A part of a pattern with its status and what it has bound, and its own parts. */
export function WaitingPart({ part }: { part: Part }) {
  const bound = boundText(part.bound);
  return (
    <List.Item>
      <code>{part.element}</code> <State state={part.status === "matched" ? "ok" : part.status} label={part.status} />
      {part.children.length === 0 && bound !== "" && (
        <Text span size="sm" c="dimmed">
          {" "}
          {bound}
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
