import { Button } from "@mantine/core";
import { IconPlayerPause, IconPlayerPlay } from "@tabler/icons-react";

import { useMay } from "../../parts/May";
import type { Registration, useChangeRegistration } from "./registrations";

interface Props {
  registration: Registration;
  change: ReturnType<typeof useChangeRegistration>;
  small?: boolean; // in a table
}

/** The button that suspends a registration, or resumes it. */
export function Suspend({ registration: { id, suspended }, change, small = false }: Props) {
  const may = useMay();
  const word = suspended ? "Resume" : "Suspend";
  const Icon = suspended ? IconPlayerPlay : IconPlayerPause;
  if (!may) return null;
  return (
    <Button
      variant="default"
      size={small ? "compact-sm" : undefined}
      loading={change.isPending}
      leftSection={<Icon size={small ? 14 : 16} />}
      aria-label={small ? `${word} registration ${id}` : undefined}
      onClick={(event) => {
        event.stopPropagation(); // the row opens it
        change.mutate({ suspended: !suspended });
      }}
    >
      {word}
    </Button>
  );
}
