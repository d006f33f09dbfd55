import { Anchor, Button, Group, Stack, Title } from "@mantine/core";
import { IconPlayerPause, IconPlayerPlay } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";

import { Problem } from "../api/problem";
import { pathIn } from "../api/zone";
import { Changed } from "../parts/Changed";
import { Empty } from "../parts/Empty";
import { Facts } from "../parts/Facts";
import { Listed } from "../parts/Listed";
import { Loading } from "../parts/Loading";
import { May } from "../parts/May";
import { Moment } from "../parts/Moment";
import { ProblemAlert } from "../parts/ProblemAlert";
import { Removal } from "../parts/Removal";
import { whole } from "../parts/text";
import { useRegistrations } from "../features/registrations/registrations";
import { summary } from "../features/registrations/summary";
import { oneGroup, type RegistrationGroup, useDeleteGroup, useSuspendGroup } from "../features/groups/groups";
import { GroupState } from "../features/groups/GroupState";

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
      <Members zone={zone} group={data.value} />
    </Stack>
  );
}

function About({ group: { name, client, suspended, registrations, created_at: at } }: { group: RegistrationGroup }) {
  return (
    <Facts
      facts={[
        ["Name", name],
        ["Client", client],
        ["State", <GroupState key="state" suspended={suspended} />],
        ["Registrations", whole(registrations)],
        ["Created", <Moment key="created" at={at} />],
      ]}
    />
  );
}

function Members({ zone, group: { name, client } }: { zone: string; group: RegistrationGroup }) {
  const registration = (id: number) => `${pathIn(zone, "registrations")}?registration=${id}`;
  return (
    <section>
      <Title order={2} mb="xs">
        Registrations
      </Title>
      <Listed
        list={useRegistrations(zone, { client, group: name })}
        label="Registrations of the group"
        columns={[
          {
            title: "Registration",
            cell: ({ id }) => (
              <Anchor component={Link} to={registration(id)} size="sm">
                {id}
              </Anchor>
            ),
          },
          { title: "Streams", cell: ({ streams }) => streams.join(", ") },
          { title: "Filter", cell: (one) => <span title={summary(one)}>{summary(one)}</span> },
        ]}
        keyOf={({ id }) => String(id)}
        minWidth={420}
        empty={<Empty title="No registrations in the group" about="Choose this group in a registration of its client." />}
      />
    </section>
  );
}
