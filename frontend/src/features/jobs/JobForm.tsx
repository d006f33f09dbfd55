import { Paper, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { useNavigate } from "react-router";

import { Problem } from "../../api/problem";
import { pathIn } from "../../api/zone";
import { Form } from "../../parts/Form";
import { useStart } from "./jobs";
import type { JobName } from "./types";

interface Props {
  zone: string;
  job: JobName;
  about: string;
  fields: readonly string[]; // fields that show their own errors
  params: Record<string, unknown> | undefined; // undefined: the form is incomplete
  action?: string;
  children: (error: unknown) => ReactNode;
}

/** Starts a run and leads to it. */
export function JobForm({ zone, job, about, fields, params, action = "Run", children }: Props) {
  const start = useStart(job);
  const navigate = useNavigate();
  const error = unwrapped(start.error);
  const submit = () => {
    if (params === undefined) return;
    start.mutate(params, { onSuccess: ({ id }) => void navigate(pathIn(zone, `jobs/${job}/${id}`)) });
  };
  return (
    <Paper withBorder bg="var(--card)" p="lg" maw={860}>
      <Form fields={fields} error={error} busy={start.isPending} action={action} ready={params !== undefined} onSubmit={submit}>
        <Text size="sm" c="dimmed">
          {about}
        </Text>
        <Stack gap="md">{children(error)}</Stack>
      </Form>
    </Paper>
  );
}

/** With the field as the form has it: `params.policies.orders.hold` is its `hold`. */
function unwrapped(error: unknown): unknown {
  if (!(error instanceof Problem) || error.field === undefined) return error;
  return error.at(error.field.replace(/^params\.(policies\..*\.(?=[a-z_]+$))?/, ""));
}
