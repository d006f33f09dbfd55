import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";

import { ProblemAlert } from "./ProblemAlert";

interface Props {
  opened: boolean;
  title: string;
  about: ReactNode;
  action: string;
  harmless?: boolean; // nothing is lost by it
  dismiss?: string; // label of the cancel button
  busy: boolean;
  ready?: boolean; // the action may be confirmed
  children?: ReactNode; // fields
  error: unknown;
  onConfirm: () => void;
  onClose: () => void;
}

/** The confirmation of an action, irreversible ones in red. */
export function Confirm({ opened, title, about, action, harmless = false, dismiss = "Cancel", busy, ready = true, children, error, onConfirm, onClose }: Props) {
  return (
    <Modal opened={opened} onClose={onClose} title={title} closeButtonProps={{ "aria-label": "Close" }} centered>
      <Stack gap="md">
        <Text size="sm" component="div">
          {about}
        </Text>
        {children}
        {error !== null && error !== undefined && <ProblemAlert error={error} />}
        <Group justify="end" gap="xs">
          <Button variant="default" onClick={onClose}>
            {dismiss}
          </Button>
          <Button color={harmless ? undefined : "red"} loading={busy} disabled={!ready} onClick={onConfirm} data-autofocus={children === undefined || undefined}>
            {action}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
