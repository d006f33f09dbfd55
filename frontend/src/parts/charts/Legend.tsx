import { Group, Text } from "@mantine/core";

import classes from "./Bars.module.css";

/** What the colours of a plot mean; for the eye, as the plot's accessible name says it in words. */
export function Legend({ entries }: { entries: readonly { name: string; colour: string }[] }) {
  return (
    <Group gap="md" px={8} aria-hidden>
      {entries.map(({ name, colour }) => (
        <Text key={name} size="xs" c="dimmed" component="span">
          <span className={classes.swatch} style={{ background: `var(${colour})` }} /> {name}
        </Text>
      ))}
    </Group>
  );
}
