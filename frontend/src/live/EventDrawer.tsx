import { Drawer, Stack } from "@mantine/core";

import { Facts } from "../parts/Facts";
import { Json } from "../parts/Json";
import { Moment } from "../parts/Moment";
import { whole } from "../parts/numbers";
import type { EventFrame } from "./frames";

interface Props {
  stream: string;
  frame: EventFrame | undefined;
  onClose: () => void;
}

/** One whole event, with what the log gave it. */
export function EventDrawer({ stream, frame, onClose }: Props) {
  return (
    <Drawer
      opened={frame !== undefined}
      onClose={onClose}
      position="right"
      size="lg"
      title={frame === undefined ? "" : `${stream} ${whole(frame.sequence)}`}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      {frame !== undefined && (
        <Stack gap="md">
          <Facts
            facts={[
              ["Appended", <Moment key="at" at={frame.appended_at} />],
              ["Segment", <span key="segment" className="mono">{frame.segment}</span>],
              ["Sequence", whole(frame.sequence)],
              ["Came as", frame.liveness === "live" ? "live" : "recovery: it was stored before the listen began"],
            ]}
          />
          <Json value={frame.event} label="the event" />
        </Stack>
      )}
    </Drawer>
  );
}
