import { Paper, Text } from "@mantine/core";
import type { ReactNode } from "react";

interface Props {
  label: string;
  value: ReactNode;
  about?: ReactNode;
}

/** One number with its name. */
export function Figure({ label, value, about }: Props) {
  return (
    <Paper withBorder bg="var(--card)" p="md" component="section" aria-label={label}>
      <Text size="sm" c="dimmed" fw={500}>
        {label}
      </Text>
      <Text fz={26} fw={650} lh={1.3} lts="-0.02em" className="number">
        {value}
      </Text>
      {about !== undefined && (
        <Text size="xs" c="dimmed" component="div">
          {about}
        </Text>
      )}
    </Paper>
  );
}
