import { Button, NativeSelect, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconTrash } from "@tabler/icons-react";
import { type ReactNode, useState } from "react";

import type { Role } from "../api/session";
import { Confirm } from "./Confirm";
import { May } from "./May";

const DAY_S = 86_400;
const GRACE = [
  { value: String(7 * DAY_S), label: "In 7 days" },
  { value: String(30 * DAY_S), label: "In 30 days" },
  { value: String(DAY_S), label: "In 1 day" },
  { value: "3600", label: "In 1 hour" },
  { value: "0", label: "As soon as possible" },
];
const WEEK = String(7 * DAY_S);

interface Props {
  noun: string; // "stream"
  name: string;
  compact?: boolean; // in a row of a table
  role?: Role; // that an operator needs
  about: ReactNode; // the consequences
  removal: { isPending: boolean; error: unknown; reset: () => void };
  onConfirm: (grace_s: number) => Promise<unknown>;
}

/** The button that schedules a deletion, confirmed by the name, with a grace period. */
export function ScheduleDeletion({ noun, name, compact = false, role, about, removal, onConfirm }: Props) {
  const [asking, { open, close }] = useDisclosure(false);
  const [typed, setTyped] = useState("");
  const [grace, setGrace] = useState(WEEK);
  return (
    <May role={role}>
      <Button
        color="red"
        variant="light"
        size={compact ? "compact-sm" : "sm"}
        leftSection={compact ? undefined : <IconTrash size={16} />}
        aria-label={compact ? `Delete the ${noun} ${name}` : undefined}
        onClick={() => {
          removal.reset();
          setTyped("");
          setGrace(WEEK);
          open();
        }}
      >
        Delete
      </Button>
      <Confirm
        opened={asking}
        title={`Delete the ${noun} ${name}`}
        about={about}
        action="Schedule the deletion"
        busy={removal.isPending}
        ready={typed === name}
        error={removal.error}
        onConfirm={() => void onConfirm(Number(grace)).then(close, () => undefined)}
        onClose={close}
      >
        <NativeSelect
          label="Deletion"
          description="Until then it can be withdrawn."
          data={GRACE}
          value={grace}
          onChange={(event) => setGrace(event.currentTarget.value)}
        />
        <TextInput
          label={`Name of the ${noun}`}
          description="Type it to confirm."
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
          autoComplete="off"
          data-autofocus
        />
      </Confirm>
    </May>
  );
}
