import { Button, Fieldset, Group, Stack } from "@mantine/core";
import type { ReactNode } from "react";

import { errorAt, Problem } from "../api/problem";
import type { Role } from "../api/session";
import { Changed } from "./Changed";
import { useMay } from "./May";
import { ProblemAlert } from "./ProblemAlert";

interface Props {
  fields: readonly string[]; // fields that show their own errors
  error: unknown;
  busy: boolean;
  action: string;
  onSubmit: () => void;
  onReload?: () => void; // after a conflict (412)
  ready?: boolean; // whether there is something to submit
  role?: Role; // that an operator needs to submit it; others can only read it
  children: ReactNode;
  aside?: ReactNode; // next to the button
}

/** A form that the hub validates: an error is shown at the field of its `position`, or at the top. */
export function Form({ fields, error, busy, action, onSubmit, onReload, ready = true, role, children, aside }: Props) {
  const may = useMay(role);
  const elsewhere = error != null && !fields.some((field) => errorAt(error, field) !== undefined);
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit();
      }}
    >
      <Stack gap="md">
        {elsewhere &&
          (error instanceof Problem && error.status === 412 ? (
            <Changed problem={error} onReload={onReload} />
          ) : (
            <ProblemAlert error={error} />
          ))}
        {may ? children : <Fieldset disabled variant="unstyled">{children}</Fieldset>}
        {may && (
          <Group justify="end" gap="xs">
            {aside}
            <Button type="submit" loading={busy} disabled={!ready}>
              {action}
            </Button>
          </Group>
        )}
      </Stack>
    </form>
  );
}
