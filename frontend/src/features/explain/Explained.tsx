import { Stack, Title } from "@mantine/core";

import { visible } from "../../parts/text";
import type { Condition, Explanation } from "./explain";
import { ExplainedTree } from "./ExplainedTree";
import { Outcome } from "./Outcome";

// when it holds, and when it does not
const WORDS: Record<string, readonly [string, string]> = {
  channels: ["The event is on its channels", "The event is on none of its channels"],
  from: ["It had started", "It had not started"],
  until: ["It had not ended", "It had ended"],
  suspended: ["It was not suspended", "It was suspended"],
  group: ["Its group was not suspended", "Its group was suspended"],
  zone: ["The event is in its zone", "The event is in another zone"],
  destinations: ["The event is for it", "The event is for others"],
  audience: ["It is in the event's audience", "It is not in the event's audience"],
  expired: ["The event had not expired", "The event had expired"],
} satisfies Record<Condition["name"], readonly [string, string]>;

interface Props {
  explanation: Explanation;
  who: string; // `The draft`, `Registration 7`
}

/** Explains why something matches an event, or why not. */
export function Explained({ explanation: { matches, held, tree, conditions }, who }: Props) {
  return (
    <Stack gap="sm">
      <Title order={3}>
        <Outcome held={matches} words={[`${who} matches it.`, `${who} does not match it.`]}>
          {!matches && held && "The filter holds, but something else does not."}
        </Outcome>
      </Title>
      <ExplainedTree tree={tree} />
      {conditions.length > 0 && <Conditions conditions={conditions} />}
    </Stack>
  );
}

/** The conditions other than the filter, each with its reason. */
export function Conditions({ conditions }: { conditions: readonly { name: string; held: boolean; why: string }[] }) {
  return (
    <Stack gap={6} component="ul" m={0} p={0} aria-label="Other conditions" style={{ listStyle: "none" }}>
      {conditions.map(({ name, held, why }) => (
        <li key={name}>
          <Outcome held={held} words={WORDS[name] ?? [name, name]} about={visible(why)} />
        </li>
      ))}
    </Stack>
  );
}
