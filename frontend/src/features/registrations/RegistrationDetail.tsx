import { Button, Group, Stack } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconPencil } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";

import type { Loaded } from "../../api/client";
import { Problem } from "../../api/problem";
import { Changed } from "../../parts/Changed";
import { Loading } from "../../parts/Loading";
import { May } from "../../parts/May";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { Removal } from "../../parts/Removal";
import { Undisturbed } from "../../parts/Undisturbed";
import { About } from "./About";
import { ExplainOn } from "./ExplainOn";
import { RegistrationForm } from "./RegistrationForm";
import { oneRegistration, type Registration, useChangeRegistration, useDeleteRegistration } from "./registrations";
import { Suspend } from "./Suspend";

interface Props {
  zone: string;
  id: number;
  onEnded: () => void;
}

/** One registration with its actions. */
export function RegistrationDetail({ zone, id, onEnded }: Props) {
  const [editing, { open, close }] = useDisclosure(false);
  const remove = useDeleteRegistration(zone, id);
  const { data, error, isError, refetch } = useQuery(oneRegistration(zone, id));
  if (isError && data === undefined) return <ProblemAlert error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading h={260} />;
  if (editing)
    return (
      <Undisturbed found={data} reload={refetch}>
        {(found, renew) => <Editing zone={zone} found={found} onClose={close} onReload={renew} />}
      </Undisturbed>
    );
  return (
    <Stack gap="lg">
      <About zone={zone} registration={data.value} />
      <Actions zone={zone} found={data} onEdit={open} onReload={() => void refetch()}>
        <Removal
          title={`Delete registration ${id}?`}
          about="Events appended after the deletion are not matched for it. Pending deliveries are still attempted."
          removal={remove}
          onConfirm={() => remove.mutate(undefined, { onSuccess: onEnded })}
        />
      </Actions>
      <ExplainOn zone={zone} registration={data.value} />
    </Stack>
  );
}

interface ActionsProps {
  zone: string;
  found: Loaded<Registration>;
  onEdit: () => void;
  onReload: () => void;
  children: ReactNode;
}

function Actions({ zone, found: { value, etag }, onEdit, onReload, children }: ActionsProps) {
  const change = useChangeRegistration(zone, value.id, etag);
  const { error } = change;
  return (
    <>
      {error instanceof Problem && error.status === 412 ? (
        <Changed
          problem={error}
          onReload={() => {
            change.reset();
            onReload();
          }}
        />
      ) : (
        change.isError && <ProblemAlert error={error} />
      )}
      <May>
        <Group gap="xs">
          <Button variant="default" leftSection={<IconPencil size={16} />} onClick={onEdit}>
            Edit
          </Button>
          <Suspend registration={value} change={change} />
          {children}
        </Group>
      </May>
    </>
  );
}

interface EditingProps {
  zone: string;
  found: Loaded<Registration>;
  onClose: () => void;
  onReload: () => void;
}

function Editing({ zone, found: { value, etag }, onClose, onReload }: EditingProps) {
  const change = useChangeRegistration(zone, value.id, etag);
  return (
    <RegistrationForm
      zone={zone}
      client={value.client}
      registration={value}
      error={change.error}
      busy={change.isPending}
      action="Save"
      aside={
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
      }
      onSubmit={(request, callback) =>
        change.mutate(
          { ...request, endpoint: callback.kind === "endpoint" ? callback.endpoint : null },
          { onSuccess: onClose },
        )
      }
      onReload={onReload}
    />
  );
}
