import { ActionIcon, CopyButton, Tooltip } from "@mantine/core";
import { IconCheck, IconCopy } from "@tabler/icons-react";

export function CopyIcon({ text, label }: { text: string; label: string }) {
  return (
    <CopyButton value={text} timeout={1500}>
      {({ copied, copy }) => (
        <Tooltip label={copied ? "Copied" : label}>
          <ActionIcon variant="subtle" color="gray" aria-label={copied ? "Copied" : label} onClick={copy}>
            {copied ? <IconCheck size={16} /> : <IconCopy size={16} stroke={1.7} />}
          </ActionIcon>
        </Tooltip>
      )}
    </CopyButton>
  );
}
