import { Select, Switch } from "@mantine/core";

import { errorAt } from "../../api/problem";
import { Section } from "../../parts/Section";
import type { Policy } from "./streams";

const STRATEGIES: Record<Policy["matching"], string> = {
  auto: "access while there are few registrations, index when there are many.",
  access: "A registration is found by the rarest value that it tests.",
  index: "The same, from files that all processes share. With very many registrations.",
  counting: "SUN's counters: each value of an event increments the registrations that test it.",
  sig: "A comparison of bits for each registration. Where events have few of many attributes.",
  memo: "The same, once for each set of fields. Where events are of few shapes, and registrations seldom change.",
  lattice: "What one registration does not find answers for those that ask for more. Where they build on each other.",
  compile: "All registrations as one program. Where they share tests, or differ by thresholds.",
  scan: "Every registration in turn. To compare the others with; slow where there are many.",
};

interface Props {
  policy: Policy;
  isNew: boolean;
  error: unknown;
  onChange: (change: Partial<Policy>) => void;
}

/** How the registrations of an event are found, and whether emitters may leave out what nobody wants. */
export function MatchingFields({ policy, error, onChange }: Props) {
  return (
    <Section title="Matching">
      <Select
        label="Strategy"
        description={`${STRATEGIES[policy.matching]} All find the same.`}
        data={Object.keys(STRATEGIES)}
        value={policy.matching}
        allowDeselect={false}
        onChange={(value) => onChange({ matching: value as Policy["matching"] })}
        error={errorAt(error, "matching")}
      />
      <Switch
        label="Emitters may leave out what nobody wants"
        description="An emitter that asks for it does not send events that no registration and no listen wants now. They are in no history, and no replay has them."
        checked={policy.quench}
        onChange={(event) => onChange({ quench: event.currentTarget.checked })}
        error={errorAt(error, "quench")}
      />
    </Section>
  );
}
