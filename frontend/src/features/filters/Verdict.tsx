import { Button, Group, Stack, Text } from "@mantine/core";
import { IconArrowRight } from "@tabler/icons-react";

import { textOf } from "../../api/problem";
import { Block } from "../../parts/Block";
import { Facts } from "../../parts/Facts";
import { State } from "../../parts/State";
import type { Checked } from "./check";
import { reaches, work } from "./cost";
import { Warnings } from "./Warnings";

interface Props {
  zone: string;
  checked: Checked;
  empty: boolean; // the filter has no condition yet
  onPredicate?: (text: string) => void; // opens the predicate form in the editor
}

/** The hub's check of a draft: warnings, predicate form and matching cost. */
export function Verdict({ zone, checked: { said, fresh, mistake, error }, empty, onPredicate }: Props) {
  const good = said?.mistake === null && mistake === undefined ? said : undefined;
  return (
    <Stack gap="xs" role="status" aria-label="Filter check">
      {error != null && (
        <Text size="sm" c="dimmed">
          Check failed: {textOf(error)}
        </Text>
      )}
      {good !== undefined && empty && (
        <Text size="sm" c="dimmed">
          No condition yet: every event matches.
        </Text>
      )}
      {good !== undefined && !empty && (
        <>
          <Warnings zone={zone} warnings={good.warnings} equalTo={good.equal_to} />
          <Group justify="space-between" gap="xs">
            <Text size="sm" c="dimmed">
              In predicate form:
            </Text>
            {onPredicate !== undefined && (
              <Button
                size="compact-xs"
                variant="subtle"
                disabled={!fresh}
                rightSection={<IconArrowRight size={12} />}
                onClick={() => onPredicate(good.predicate ?? "")}
              >
                Go on in predicate
              </Button>
            )}
          </Group>
          <Block text={good.predicate ?? ""} label="In predicate form" copy="Copy the predicate" wraps />
          {good.cost !== null && <Cost cost={good.cost} />}
        </>
      )}
    </Stack>
  );
}

function Cost({ cost }: { cost: NonNullable<NonNullable<Checked["said"]>["cost"]> }) {
  const found = reaches(cost);
  if (found.length === 0) return null; // it never matches
  return (
    <Facts
      facts={[
        [
          "Evaluated for",
          <Group key="costs" gap={6}>
            <State state={cost.every_event ? "low" : "ok"} label={cost.every_event ? "every event" : "some events"} />
            {!cost.every_event && <span>{found.join("; ")}</span>}
          </Group>,
        ],
        ["Then", work(cost)],
      ]}
    />
  );
}
