import { Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconPlayerStop } from "@tabler/icons-react";

import { Confirm } from "../parts/Confirm";
import { useCancel } from "./jobs";
import type { Run } from "./types";
import { titleOf } from "./words";

const STOPPING = "being cancelled"; // as the hub calls the phase of a run that is to end

/** The button that ends a run, after a question. */
export function CancelRun({ run }: { run: Run }) {
  const [asking, { open, close }] = useDisclosure(false);
  const cancel = useCancel(run);
  return (
    <>
      <Button
        variant="default"
        disabled={run.phase === STOPPING}
        leftSection={<IconPlayerStop size={16} />}
        onClick={() => {
          cancel.reset();
          open();
        }}
      >
        Cancel
      </Button>
      <Confirm
        opened={asking}
        title={`Cancel ${titleOf(run)}?`}
        about="What it has done so far is thrown away; nothing in the hub is changed. Its log stays."
        action="Cancel the run"
        dismiss="Let it run"
        busy={cancel.isPending}
        error={cancel.error}
        onConfirm={() => cancel.mutate(undefined, { onSuccess: close })}
        onClose={close}
      />
    </>
  );
}
