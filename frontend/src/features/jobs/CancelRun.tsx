import { Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconPlayerStop } from "@tabler/icons-react";

import { Confirm } from "../../parts/Confirm";
import { May } from "../../parts/May";
import { useCancel } from "./jobs";
import type { Run } from "./types";
import { titleOf } from "./words";

const STOPPING = "being cancelled"; // the phase of a run whose cancellation was requested

/** The button that cancels a run, after a confirmation. */
export function CancelRun({ run }: { run: Run }) {
  const [asking, { open, close }] = useDisclosure(false);
  const cancel = useCancel(run);
  return (
    <>
      <May>
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
      </May>
      <Confirm
        opened={asking}
        title={`Cancel ${titleOf(run)}?`}
        about="Its work so far is discarded and nothing in the hub changes. Its log remains."
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
