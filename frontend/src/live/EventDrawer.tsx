import { Anchor, Drawer, Stack } from "@mantine/core";
import { Link } from "react-router";

import { pathIn } from "../api/zone";
import { Facts } from "../parts/Facts";
import { Json } from "../parts/Json";
import { Moment } from "../parts/Moment";
import { whole } from "../parts/text";
import type { EventFrame } from "./frames";

interface Props {
  zone: string;
  stream: string;
  frame: EventFrame | undefined;
  onClose: () => void;
}

/** One whole event, with what the log gave it. */
export function EventDrawer({ zone, stream, frame, onClose }: Props) {
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
          <Anchor
            component={Link}
            to={`${pathIn(zone, "deliveries")}?stream=${encodeURIComponent(stream)}&sequence=${frame.sequence}`}
            size="sm"
          >
            Its deliveries
          </Anchor>
          <Json value={frame.event} label="the event" />
        </Stack>
      )}
    </Drawer>
  );
}
