import { Paper, Stack, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";

import { Command } from "./Command";

interface Props {
  title: string;
  about: string;
  command?: string; // an example to copy
  children?: ReactNode;
}

/** The content of an empty list: what it will contain, with an example. */
export function Empty({ title, about, command, children }: Props) {
  return (
    <Paper withBorder bg="var(--card)" p="xl">
      <Stack gap="sm" maw={760}>
        <div>
          <Title order={2}>{title}</Title>
          <Text size="sm" c="dimmed">
            {about}
          </Text>
        </div>
        {command !== undefined && <Command text={command} />}
        {children !== undefined && <div>{children}</div>}
      </Stack>
    </Paper>
  );
}
