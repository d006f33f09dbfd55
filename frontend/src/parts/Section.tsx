import { Fieldset, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";

interface Props {
  title: string;
  about?: string;
  children: ReactNode;
}

/** Fields of a form that belong together, with what they are for. */
export function Section({ title, about, children }: Props) {
  return (
    <Fieldset legend={title} radius="md">
      <Stack gap="md">
        {about !== undefined && (
          <Text size="sm" c="dimmed">
            {about}
          </Text>
        )}
        {children}
      </Stack>
    </Fieldset>
  );
}
