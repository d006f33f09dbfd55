import { Anchor, Text } from "@mantine/core";

/** Which release answers, and where superusers see the tables behind the console. */
export function Release({ version }: { version: string }) {
  return (
    <Text size="sm" c="dimmed">
      EventHub {version} ·{" "}
      <Anchor href="/admin/" inherit underline="always">
        Back office
      </Anchor>{" "}
      (all tables, for superusers)
    </Text>
  );
}
