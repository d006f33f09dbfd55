import { Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconTrash } from "@tabler/icons-react";

import { Confirm } from "./Confirm";
import { May } from "./May";

interface Props {
  title: string;
  about: string;
  action?: string;
  label?: string; // says more than the action, in a list of such buttons
  removal: { isPending: boolean; error: unknown; reset: () => void };
  onConfirm: (close: () => void) => void;
}

/** The button that deletes something, after a confirmation; with a `label` it is a small one. */
export function Removal({ title, about, action = "Delete", label, removal, onConfirm }: Props) {
  const [asking, { open, close }] = useDisclosure(false);
  return (
    <May>
      <Button
        color="red"
        variant="light"
        size={label === undefined ? undefined : "compact-sm"}
        aria-label={label}
        leftSection={label === undefined && <IconTrash size={16} />}
        onClick={() => {
          removal.reset();
          open();
        }}
      >
        {action}
      </Button>
      <Confirm
        opened={asking}
        title={title}
        about={about}
        action={action}
        busy={removal.isPending}
        error={removal.error}
        onConfirm={() => onConfirm(close)}
        onClose={close}
      />
    </May>
  );
}
