import { Button } from "@mantine/core";
import { IconPlayerPause, IconPlayerPlay, IconPlugConnected, IconPlugConnectedX } from "@tabler/icons-react";

import { Problem } from "../../api/problem";
import { Changed } from "../../parts/Changed";
import { ProblemAlert } from "../../parts/ProblemAlert";

interface Switched {
  suspended?: boolean;
  disconnected?: boolean;
}

interface Props {
  suspended: boolean;
  disconnected: boolean;
  suspends: boolean; // whether it can be suspended
  connects: boolean; // whether events are delivered to it
  busy: boolean;
  onSwitch: (change: Switched) => void;
}

/** The buttons that suspend, resume, disconnect and connect. */
export function Switches({ suspended, disconnected, suspends, connects, busy, onSwitch }: Props) {
  return (
    <>
      {suspends && (
        <Button
          variant="default"
          loading={busy}
          leftSection={suspended ? <IconPlayerPlay size={16} /> : <IconPlayerPause size={16} />}
          onClick={() => onSwitch({ suspended: !suspended })}
        >
          {suspended ? "Resume" : "Suspend"}
        </Button>
      )}
      {connects && (
        <Button
          variant="default"
          loading={busy}
          leftSection={disconnected ? <IconPlugConnected size={16} /> : <IconPlugConnectedX size={16} />}
          onClick={() => onSwitch({ disconnected: !disconnected })}
        >
          {disconnected ? "Connect" : "Disconnect"}
        </Button>
      )}
    </>
  );
}

interface Refusal {
  error: unknown;
  onReload: () => void;
}

/** Why a change was refused; after a conflict, the current version can be loaded. */
export function Refused({ error, onReload }: Refusal) {
  if (error === null) return null;
  if (error instanceof Problem && error.status === 412) return <Changed problem={error} onReload={onReload} />;
  return <ProblemAlert error={error} />;
}
