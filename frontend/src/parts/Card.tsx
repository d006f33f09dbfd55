import { Group, Paper, Title } from "@mantine/core";
import type { ReactNode } from "react";

interface Props {
  title: string;
  aside?: ReactNode;
  children: ReactNode;
}

export function Card({ title, aside, children }: Props) {
  return (
    <Paper withBorder bg="var(--card)" component="section" aria-label={title}>
      <Group justify="space-between" px="md" pt="sm" pb="xs">
        <Title order={2}>{title}</Title>
        {aside}
      </Group>
      {children}
    </Paper>
  );
}
