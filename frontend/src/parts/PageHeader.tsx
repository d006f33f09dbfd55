import { Anchor, Group, Text, Title } from "@mantine/core";
import { IconChevronLeft } from "@tabler/icons-react";
import { type ReactNode, useEffect } from "react";
import { Link } from "react-router";

interface Props {
  title: string;
  about: ReactNode;
  back?: { to: string; label: string }; // the parent list
  badges?: ReactNode; // next to the title
  children?: ReactNode; // actions
}

export function PageHeader({ title, about, back, badges, children }: Props) {
  useEffect(() => {
    document.title = `${title} · EventHub`;
  }, [title]);
  return (
    <Group justify="space-between" align="end" mb="lg" gap="md">
      <div>
        {back !== undefined && (
          <Anchor component={Link} to={back.to} size="sm">
            <Group gap={2} component="span">
              <IconChevronLeft size={14} aria-hidden />
              {back.label}
            </Group>
          </Anchor>
        )}
        <Group gap="sm">
          <Title order={1}>{title}</Title>
          {badges}
        </Group>
        <Text c="dimmed" size="sm" component="div">
          {about}
        </Text>
      </div>
      {children !== undefined && <Group gap="xs">{children}</Group>}
    </Group>
  );
}
