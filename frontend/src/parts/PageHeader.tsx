import { Group, Text, Title } from "@mantine/core";
import { type ReactNode, useEffect } from "react";

interface Props {
  title: string;
  about: string;
  children?: ReactNode; // what can be done here
}

export function PageHeader({ title, about, children }: Props) {
  useEffect(() => {
    document.title = `${title} · EventHub`;
  }, [title]);
  return (
    <Group justify="space-between" align="end" mb="lg" gap="md">
      <div>
        <Title order={1}>{title}</Title>
        <Text c="dimmed" size="sm">
          {about}
        </Text>
      </div>
      {children !== undefined && <Group gap="xs">{children}</Group>}
    </Group>
  );
}
