import { Alert, Anchor, Button, Group, Stack, Text } from "@mantine/core";
import { IconAlertCircle, IconPlayerPause, IconPlayerPlay } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";

import { Facts } from "../../parts/Facts";
import { Loading } from "../../parts/Loading";
import { May } from "../../parts/May";
import { Moment } from "../../parts/Moment";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { Removal } from "../../parts/Removal";
import { whole } from "../../parts/text";
import { onePatternGroup, type PatternFilter, type PatternGroup, useDeletePatternGroup, useSuspendPatternGroup } from "./patterns";

interface Props {
  zone: string;
  id: number;
  onPatterns: (filter: PatternFilter) => void; // shows those of the group
  onDeleted: () => void;
}

/** One pattern group: its streams, how far it is, and its actions. */
export function PatternGroupDetail({ zone, id, onPatterns, onDeleted }: Props) {
  const { data, error, isError, refetch } = useQuery(onePatternGroup(zone, id));
  const suspend = useSuspendPatternGroup(zone, id);
  const remove = useDeletePatternGroup(zone, id);
  if (isError) return <ProblemAlert error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading h={200} />;
  return (
    <Stack gap="lg">
      {data.fault !== null && <Stopped fault={data.fault} />}
      {suspend.isError && <ProblemAlert error={suspend.error} />}
      <Facts
        facts={[
          ["Name", data.name],
          ["Client", data.client],
          ["Streams", data.streams.join(", ")],
          ["Output stream", data.output_stream ?? "that of the event which completed a match"],
          ["Patterns", whole(data.patterns)],
          ["Suspended patterns", whole(data.suspended_patterns)],
          ["Consumed events", whole(data.consumed)],
          ["Created", <Moment key="created" at={data.created_at} />],
        ]}
      />
      <Anchor component="button" type="button" size="sm" ta="left" onClick={() => onPatterns({ client: data.client, group: data.name })}>
        Show its patterns
      </Anchor>
      <May>
        <Group gap="xs">
          <Button variant="default" loading={suspend.isPending} leftSection={<IconPlayerPause size={16} />} onClick={() => suspend.mutate(true)}>
            Suspend all patterns
          </Button>
          <Button variant="default" loading={suspend.isPending} leftSection={<IconPlayerPlay size={16} />} onClick={() => suspend.mutate(false)}>
            Resume all patterns
          </Button>
          <Removal
            title={`Delete the pattern group ${data.name}?`}
            about="Its patterns are deleted with it."
            removal={remove}
            onConfirm={() => remove.mutate(undefined, { onSuccess: onDeleted })}
          />
        </Group>
      </May>
    </Stack>
  );
}

function Stopped({ fault }: { fault: NonNullable<PatternGroup["fault"]> }) {
  const { code, message } = fault as { code?: string; message?: string };
  return (
    <Alert color="red" variant="light" icon={<IconAlertCircle />} role="alert" title={`The group has stopped: ${code ?? ""}`}>
      <Text size="sm">{message}</Text>
    </Alert>
  );
}
