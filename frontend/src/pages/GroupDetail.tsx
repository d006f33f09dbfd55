import { Button, Group, Stack } from "@mantine/core";
import { IconPlayerPause, IconPlayerPlay } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";

import { Problem } from "../api/problem";
import { Changed } from "../parts/Changed";
import { Facts } from "../parts/Facts";
import { Loading } from "../parts/Loading";
import { May } from "../parts/May";
import { Moment } from "../parts/Moment";
import { ProblemAlert } from "../parts/ProblemAlert";
import { Removal } from "../parts/Removal";
import { whole } from "../parts/text";
import { oneGroup, type RegistrationGroup, useDeleteGroup, useSuspendGroup } from "../features/groups/groups";
import { GroupState } from "../features/groups/GroupState";
import { OwnedRegistrations } from "./OwnedRegistrations";

interface Props {
  zone: string;
  id: number;
  onEnded: () => void;
}

/** One group with its registrations and actions. */
export function GroupDetail({ zone, id, onEnded }: Props) {
  const { data, error, isError, refetch } = useQuery(oneGroup(zone, id));
  const remove = useDeleteGroup(zone, id);
  const suspend = useSuspendGroup(zone, id, data?.etag);
  if (isError && data === undefined) return <ProblemAlert error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading h={260} />;
  const { suspended, name } = data.value;
  return (
    <Stack gap="lg">
      <About group={data.value} />
      {suspend.error instanceof Problem && suspend.error.status === 412 ? (
        <Changed
          problem={suspend.error}
          onReload={() => {
            suspend.reset();
            void refetch();
          }}
        />
      ) : (
        suspend.isError && <ProblemAlert error={suspend.error} />
      )}
      <May>
        <Group gap="xs">
          <Button
            variant="default"
            loading={suspend.isPending}
            leftSection={suspended ? <IconPlayerPlay size={16} /> : <IconPlayerPause size={16} />}
            onClick={() => suspend.mutate(!suspended)}
          >
            {suspended ? "Resume" : "Suspend"}
          </Button>
          <Removal
            title={`Delete the group ${name}?`}
            about="A group with registrations cannot be deleted. Delete them or remove them from the group first."
            removal={remove}
            onConfirm={() => remove.mutate(undefined, { onSuccess: onEnded })}
          />
        </Group>
      </May>
      <OwnedRegistrations zone={zone} of="group" filter={{ client: data.value.client, group: name }} />
    </Stack>
  );
}

function About({ group: { name, client, session, session_group: sessions, suspended, registrations, created_at: at } }: { group: RegistrationGroup }) {
  return (
    <Facts
      facts={[
        ["Name", name],
        ["Client", client],
        ...(session === null ? [] : [["Session", session] as const]),
        ...(sessions === null ? [] : [["Session group", sessions] as const]),
        ["State", <GroupState key="state" suspended={suspended} />],
        ["Registrations", whole(registrations)],
        ["Created", <Moment key="created" at={at} />],
      ]}
    />
  );
}
