import { Group, Text, Tooltip } from "@mantine/core";

import { State } from "../../parts/State";

/** A secret that is set, with the end of its digest, by which two can be compared. */
export function IsSet({ digest }: { digest: string }) {
  return (
    <Group gap={8} wrap="nowrap">
      <State state="ok" label="set" />
      <Tooltip label="The end of a digest: equal secrets have the same one.">
        <Text span size="sm" c="dimmed" className="mono" tabIndex={0}>
          {digest}
        </Text>
      </Tooltip>
    </Group>
  );
}

export function None() {
  return (
    <Text size="sm" c="dimmed">
      None are set.
    </Text>
  );
}
