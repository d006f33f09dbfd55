import { Anchor, Text } from "@mantine/core";

/** The release, and a link to the tables for superusers. */
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
