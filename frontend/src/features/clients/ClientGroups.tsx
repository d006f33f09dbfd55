import { Button, Group, Text, Title } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconPencil } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import type { Loaded } from "../../api/client";
import { errorAt } from "../../api/problem";
import { Form } from "../../parts/Form";
import { Loading } from "../../parts/Loading";
import { May } from "../../parts/May";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { Undisturbed } from "../../parts/Undisturbed";
import { type Client, oneClient, useChangeClient } from "./clients";
import { GroupNames, GroupsInput } from "./GroupsInput";

/** The groups of a client, for events with an audience. */
export function ClientGroups({ zone, name }: { zone: string; name: string }) {
  const [editing, { open, close }] = useDisclosure(false);
  const { data, error, isError, refetch } = useQuery(oneClient(zone, name));
  if (isError && data === undefined) return <ProblemAlert error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading h={90} />;
  return (
    <section aria-label="Groups">
      <Group justify="space-between" mb="xs">
        <Title order={2}>Groups</Title>
        {!editing && (
          <May>
            <Button variant="default" leftSection={<IconPencil size={16} />} onClick={open}>
              Edit groups
            </Button>
          </May>
        )}
      </Group>
      {editing ? (
        <Undisturbed found={data} reload={refetch}>
          {(found, renew) => <Editing zone={zone} found={found} onClose={close} onReload={renew} />}
        </Undisturbed>
      ) : (
        <>
          <Text size="sm" c="dimmed" mb={6}>
            The client receives events whose audience names one of these groups, and all events without an audience.
          </Text>
          <GroupNames names={data.value.groups} />
        </>
      )}
    </section>
  );
}

interface EditingProps {
  zone: string;
  found: Loaded<Client>;
  onClose: () => void;
  onReload: () => void;
}

function Editing({ zone, found: { value, etag }, onClose, onReload }: EditingProps) {
  const change = useChangeClient(zone, value.name, etag);
  const [groups, setGroups] = useState(value.groups);
  return (
    <Form
      fields={["groups"]}
      error={change.error}
      busy={change.isPending}
      action="Save"
      aside={
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
      }
      onSubmit={() => change.mutate(groups, { onSuccess: onClose })}
      onReload={onReload}
    >
      <GroupsInput value={groups} onChange={setGroups} error={errorAt(change.error, "groups")} />
    </Form>
  );
}
