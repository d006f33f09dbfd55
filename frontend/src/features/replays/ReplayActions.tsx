import { Button, Group, Stack } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconPlayerPause, IconPlayerPlay, IconPlayerStop } from "@tabler/icons-react";

import { Confirm } from "../../parts/Confirm";
import { May } from "../../parts/May";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { whole } from "../../parts/text";
import { isGoing, type Replay, useChangeReplay } from "./replays";

/** Pauses, resumes and cancels a run that has not ended. */
export function ReplayActions({ zone, replay }: { zone: string; replay: Replay }) {
  const paused = replay.state === "paused";
  const change = useChangeReplay(zone, replay.id, paused ? "resume" : "pause");
  if (!isGoing(replay)) return null;
  return (
    <Stack gap="xs">
      {change.isError && <ProblemAlert error={change.error} />}
      <May>
        <Group gap="xs">
          <Button
            variant="default"
            loading={change.isPending}
            leftSection={paused ? <IconPlayerPlay size={16} /> : <IconPlayerPause size={16} />}
            onClick={() => change.mutate()}
          >
            {paused ? "Resume" : "Pause"}
          </Button>
          <CancelReplay zone={zone} replay={replay} />
        </Group>
      </May>
    </Stack>
  );
}

function CancelReplay({ zone, replay: { id, written } }: { zone: string; replay: Replay }) {
  const [asking, { open, close }] = useDisclosure(false);
  const cancel = useChangeReplay(zone, id, "cancel");
  return (
    <>
      <Button
        variant="default"
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
        title={`Cancel replay ${id}?`}
        about={`What it has sent stays sent: ${whole(written)} deliveries. A cancelled run cannot be resumed.`}
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
