import { Group, Text } from "@mantine/core";

export function Brand() {
  return (
    <Group gap={10} wrap="nowrap">
      <img src="/console/icon.svg" alt="" width={28} height={28} />
      <Text fw={680} fz={17} lts="-0.01em">
        EventHub
      </Text>
    </Group>
  );
}
