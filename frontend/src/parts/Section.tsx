import { Fieldset, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";

interface Props {
  title: string;
  about?: string;
  children: ReactNode;
}

/** A section of a form with a title and a description. */
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
