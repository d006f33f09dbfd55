import { Button, Group } from "@mantine/core";
import { IconPlayerPause, IconPlayerPlay, IconPlugConnected, IconPlugConnectedX } from "@tabler/icons-react";

import { Problem } from "../../api/problem";
import { Changed } from "../../parts/Changed";
import { May } from "../../parts/May";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { Removal } from "../../parts/Removal";

export interface Switched {
  suspended?: boolean;
  disconnected?: boolean;
}

interface Props {
  suspended: boolean;
  disconnected: boolean;
  suspends: boolean; // whether it can be suspended
  connects: boolean; // whether events are delivered to it
  change: { isPending: boolean; error: unknown; reset: () => void; mutate: (change: Switched) => void };
  removal: Parameters<typeof Removal>[0];
  onReload: () => void;
}

/** The actions on a session or session group: suspend or resume, disconnect or connect, delete. */
export function Switches({ suspended, disconnected, suspends, connects, change, removal, onReload }: Props) {
  const reload = () => {
    change.reset();
    onReload();
  };
  return (
    <>
      <Refused error={change.error} onReload={reload} />
      <May>
        <Group gap="xs">
          {suspends && (
            <Button
              variant="default"
              loading={change.isPending}
              leftSection={suspended ? <IconPlayerPlay size={16} /> : <IconPlayerPause size={16} />}
              onClick={() => change.mutate({ suspended: !suspended })}
            >
              {suspended ? "Resume" : "Suspend"}
            </Button>
          )}
          {connects && (
            <Button
              variant="default"
              loading={change.isPending}
              leftSection={disconnected ? <IconPlugConnected size={16} /> : <IconPlugConnectedX size={16} />}
              onClick={() => change.mutate({ disconnected: !disconnected })}
            >
              {disconnected ? "Connect" : "Disconnect"}
            </Button>
          )}
          <Removal {...removal} />
        </Group>
      </May>
    </>
  );
}

/** Why a change was refused; after a conflict, the current version can be loaded. */
function Refused({ error, onReload }: { error: unknown; onReload: () => void }) {
  if (error === null) return null;
  if (error instanceof Problem && error.status === 412) return <Changed problem={error} onReload={onReload} />;
  return <ProblemAlert error={error} />;
}
