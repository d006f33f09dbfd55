import { Button, Group, List, Stack, Title } from "@mantine/core";
import { IconPlayerPause, IconPlayerPlay } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";

import { Facts } from "../../parts/Facts";
import { Json } from "../../parts/Json";
import { Loading } from "../../parts/Loading";
import { May } from "../../parts/May";
import { Moment } from "../../parts/Moment";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { Removal } from "../../parts/Removal";
import { whole } from "../../parts/text";
import { oneTimer, scheduleText, type Timer, useDeleteTimer, useSuspendTimer } from "./timers";
import { TimerState } from "./TimerState";

interface Props {
  zone: string;
  id: number;
  onDeleted: () => void;
}

/** One timer: its times, its event and its actions. */
export function TimerDetail({ zone, id, onDeleted }: Props) {
  const { data, error, isError, refetch } = useQuery(oneTimer(zone, id));
  const suspend = useSuspendTimer(zone, id);
  const remove = useDeleteTimer(zone, id);
  if (isError) return <ProblemAlert error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading h={260} />;
  const Icon = data.suspended ? IconPlayerPlay : IconPlayerPause;
  return (
    <Stack gap="lg">
      {suspend.isError && <ProblemAlert error={suspend.error} />}
      <About timer={data} />
      {data.upcoming.length > 0 && (
        <section>
          <Title order={2} mb="xs">
            Next times
          </Title>
          <List type="ordered">
            {data.upcoming.map((at) => (
              <List.Item key={at}>
                <Moment at={at} />
              </List.Item>
            ))}
          </List>
        </section>
      )}
      {data.event !== null && <Json value={data.event} label="event" />}
      <May>
        <Group gap="xs">
        <Button
          variant="default"
          loading={suspend.isPending}
          leftSection={<Icon size={16} />}
          onClick={() => suspend.mutate(!data.suspended)}
        >
          {data.suspended ? "Resume" : "Suspend"}
        </Button>
        <Removal
          title={data.handle === null ? "Cancel this delayed event?" : `Delete the timer ${data.handle}?`}
          about={data.handle === null ? "It is not stored." : "It does not fire again. Its handle may be used for another timer."}
          removal={remove}
          onConfirm={() => remove.mutate(undefined, { onSuccess: onDeleted })}
        />
        </Group>
      </May>
    </Stack>
  );
}

function About({ timer: one }: { timer: Timer }) {
  return (
    <Facts
      facts={[
        ["State", <TimerState key="state" suspended={one.suspended} />],
        ["Handle", one.handle ?? "– (a delayed event)"],
        ["Client", one.client],
        ["Stream", one.stream],
        ["Registration", one.registration ?? "–"],
        ["Fires", scheduleText(one)],
        ["End", one.end === null ? "–" : <Moment key="end" at={one.end} />],
        ["Number of fires", whole(one.fired)],
        ["Last fire", one.fired_at === null ? "–" : <Moment key="fired" at={one.fired_at} />],
        ["Created", <Moment key="created" at={one.created_at} />],
      ]}
    />
  );
}
