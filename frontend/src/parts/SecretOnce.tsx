import { Button, Code, CopyButton, Group, Modal, Stack, Text } from "@mantine/core";

/** A secret that is shown once: `name` as in `the endpoint's secret`. */
export interface Secret {
  name: string;
  about: string;
  text: string;
}

interface Props {
  secret: Secret | undefined;
  onClose: () => void;
}

export function SecretOnce({ secret, onClose }: Props) {
  return (
    <Modal
      opened={secret !== undefined}
      onClose={onClose}
      title={`The ${secret?.name ?? "secret"}`}
      closeOnClickOutside={false}
      withCloseButton={false}
      size="lg"
      centered
    >
      <Stack gap="md">
        <Text size="sm">{secret?.about} It is shown this once: keep it now.</Text>
        <Code block aria-label="Secret">
          {secret?.text}
        </Code>
        <Group justify="end" gap="xs">
          <CopyButton value={secret?.text ?? ""}>
            {({ copied, copy }) => (
              <Button onClick={copy} data-autofocus>
                {copied ? "Copied" : "Copy it"}
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
