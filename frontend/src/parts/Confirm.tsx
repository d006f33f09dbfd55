import { Button, Group, Modal, Stack, Text } from "@mantine/core";

import { ProblemAlert } from "./ProblemAlert";

interface Props {
  opened: boolean;
  title: string;
  about: string;
  action: string;
  busy: boolean;
  error: unknown;
  onConfirm: () => void;
  onClose: () => void;
}

/** Asked before something ends for good. */
export function Confirm({ opened, title, about, action, busy, error, onConfirm, onClose }: Props) {
  return (
    <Modal opened={opened} onClose={onClose} title={title} closeButtonProps={{ "aria-label": "Close" }} centered>
      <Stack gap="md">
        <Text size="sm">{about}</Text>
        {error !== null && error !== undefined && <ProblemAlert error={error} />}
        <Group justify="end" gap="xs">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button color="red" loading={busy} onClick={onConfirm} data-autofocus>
            {action}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
