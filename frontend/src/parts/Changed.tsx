import { Alert, Button, Stack, Text } from "@mantine/core";
import { IconUsers } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";

import type { Problem } from "../api/problem";
import { useZone } from "../api/zone";
import { oneEvent } from "../api/oneEvent";
import { Json } from "./Json";
import { Moment } from "./Moment";

interface Props {
  problem: Problem;
  stream?: string; // stream of the change event; `system` has those of all resources
  onReload: (() => void) | undefined;
}

/** A conflict (412): shows the other user's change and offers to reload. */
export function Changed({ problem, stream = "system", onReload }: Props) {
  const zone = useZone();
  const { current } = problem;
  const first = useQuery({ ...oneEvent(zone, stream, current ?? 0), enabled: current !== undefined, retry: false });
  const event = first.data;
  return (
    <Alert color="yellow" variant="light" icon={<IconUsers />} role="alert" title="Changed in the meantime">
      <Stack gap="sm" align="start">
        <Text size="sm">
          Nothing was changed here, because it has changed since it was loaded
          {event !== undefined && (
            <>
              {" "}
              (<b>{event.type}</b>, <Moment at={event.appended_at} />)
            </>
          )}
          .
        </Text>
        {event !== undefined && <Json value={event.attributes} label="what was changed" />}
        {onReload !== undefined && (
          <Button size="compact-sm" variant="default" onClick={onReload}>
            Load the current version
          </Button>
        )}
        <Text size="xs" c="dimmed" className="mono">
          {problem.status} {problem.code}
        </Text>
      </Stack>
    </Alert>
  );
}
