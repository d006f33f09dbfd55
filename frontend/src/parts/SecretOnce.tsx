import { Button, Code, CopyButton, Group, Modal, Stack, Text } from "@mantine/core";

interface Props {
  secret: string | undefined;
  onClose: () => void;
}

/** The secret of a new endpoint: nothing can show it again. */
export function SecretOnce({ secret, onClose }: Props) {
  return (
    <Modal
      opened={secret !== undefined}
      onClose={onClose}
      title="The endpoint's secret"
      closeOnClickOutside={false}
      withCloseButton={false}
      size="lg"
      centered
    >
      <Stack gap="md">
        <Text size="sm">
          Receivers check the signature of every callback with it (Standard Webhooks). It is shown this once: keep it now.
        </Text>
        <Code block aria-label="Secret">
          {secret}
        </Code>
        <Group justify="end" gap="xs">
          <CopyButton value={secret ?? ""}>
            {({ copied, copy }) => (
              <Button onClick={copy} data-autofocus>
                {copied ? "Copied" : "Copy the secret"}
              </Button>
            )}
          </CopyButton>
          <Button variant="default" onClick={onClose}>
            Done
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
