import { Select, Switch } from "@mantine/core";

import { errorAt } from "../../api/problem";
import { Section } from "../../parts/Section";
import type { Policy } from "./streams";

const STRATEGIES: Record<Policy["matching"], string> = {
  auto: "access while there are few registrations, index when there are many.",
  access: "A registration is found by the rarest value that it tests.",
  index: "The same, from files that all processes share. Suits very many registrations.",
  counting: "SUN's counters: each value of an event increments the registrations that test it.",
  sig: "A comparison of bits for each registration. Suits events with few of many attributes.",
  memo: "The same, once for each set of fields. Suits events of few shapes and registrations that seldom change.",
  lattice: "A failed registration excludes its stricter ones. Suits registrations that extend each other.",
  compile: "All registrations as one program. Suits shared tests and differing thresholds.",
  scan: "Every registration in turn. A baseline for comparison; slow with many registrations.",
};

interface Props {
  policy: Policy;
  isNew: boolean;
  error: unknown;
  onChange: (change: Partial<Policy>) => void;
}

/** The matching strategy of a stream, its producer back-pressure (quench), and whether filters read bodies. */
export function MatchingFields({ policy, error, onChange }: Props) {
  return (
    <Section title="Matching">
      <Select
        label="Strategy"
        description={`${STRATEGIES[policy.matching]} All strategies give the same result.`}
        data={Object.keys(STRATEGIES)}
        value={policy.matching}
        allowDeselect={false}
        onChange={(value) => onChange({ matching: value as Policy["matching"] })}
        error={errorAt(error, "matching")}
      />
      <Switch
        label="Producers may omit unmatched events"
        description="A producer that opts in does not send events that match no registration and no listener. They are not stored and not replayed."
        checked={policy.quench}
        onChange={(event) => onChange({ quench: event.currentTarget.checked })}
        error={errorAt(error, "quench")}
      />
      <Switch
        label="Filters read JSON bodies"
        description="Filters read the JSON body of an event, or the data of a CloudEvent, as data.… . A body of more than 65,536 bytes or 2,000 values is refused."
        checked={policy.filterable_data}
        onChange={(event) => onChange({ filterable_data: event.currentTarget.checked })}
        error={errorAt(error, "filterable_data")}
      />
    </Section>
  );
}
