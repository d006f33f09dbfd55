import { Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconTrash } from "@tabler/icons-react";

import { Confirm } from "./Confirm";

interface Props {
  title: string;
  about: string;
  action?: string;
  removal: { isPending: boolean; error: unknown; reset: () => void };
  onConfirm: () => void;
}

/** The button that deletes something, after a confirmation. */
export function Removal({ title, about, action = "Delete", removal, onConfirm }: Props) {
  const [asking, { open, close }] = useDisclosure(false);
  return (
    <>
      <Button
        color="red"
        variant="light"
        leftSection={<IconTrash size={16} />}
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
        onConfirm={onConfirm}
        onClose={close}
      />
    </>
  );
}
