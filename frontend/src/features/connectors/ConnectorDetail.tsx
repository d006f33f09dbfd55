import { Button, Code, Group, Stack, Text, Title } from "@mantine/core";
import { IconPlayerPause, IconPlayerPlay } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";

import { Facts } from "../../parts/Facts";
import { Loading } from "../../parts/Loading";
import { May } from "../../parts/May";
import { Moment } from "../../parts/Moment";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { Removal } from "../../parts/Removal";
import { whole } from "../../parts/text";
import { type Connector, oneConnector, useChangeConnector, useDeleteConnector } from "./connectors";
import { ConnectorState } from "./ConnectorState";

interface Props {
  zone: string;
  id: number;
  onDeleted: () => void;
}

/** One connector: its state, its lag, what holds it up, and its actions. */
export function ConnectorDetail({ zone, id, onDeleted }: Props) {
  const { data, error, isError, refetch } = useQuery(oneConnector(zone, id));
  if (isError) return <ProblemAlert error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading h={260} />;
  return (
    <Stack gap="lg">
      <About connector={data} />
      <Actions zone={zone} connector={data} onDeleted={onDeleted} />
      <Shown title="Settings" value={data.settings} />
      <Shown title="Map" value={data.mapping} />
    </Stack>
  );
}

function Actions({ zone, connector, onDeleted }: { zone: string; connector: Connector; onDeleted: () => void }) {
  const change = useChangeConnector(zone, connector.id);
  const remove = useDeleteConnector(zone, connector.id);
  const Icon = connector.enabled ? IconPlayerPause : IconPlayerPlay;
  const stops = connector.on_refusal === "stop";
  return (
    <May>
      {change.isError && <ProblemAlert error={change.error} />}
      <Group gap="xs">
        <Button
          variant="default"
          loading={change.isPending}
          leftSection={<Icon size={16} />}
          onClick={() => change.mutate({ enabled: !connector.enabled })}
        >
          {connector.enabled ? "Pause" : "Resume"}
        </Button>
        <Button
          variant="default"
          loading={change.isPending}
          onClick={() => change.mutate({ on_refusal: stops ? "set_aside" : "stop" })}
        >
          {stops ? "Set refused rows aside" : "Stop at refused rows"}
        </Button>
        <Removal
          title={`Delete the connector ${connector.name}?`}
          about="Its position is lost. Its events remain in the stream, and the rows or records where they are."
          removal={remove}
          onConfirm={() => remove.mutate(undefined, { onSuccess: onDeleted })}
        />
      </Group>
    </May>
  );
}

function About({ connector: one }: { connector: Connector }) {
  const time = (at: string | null) => (at === null ? "–" : <Moment at={at} />);
  return (
    <>
      {one.error && (
        <Text role="status">
          <Code>{one.error.code}</Code> {one.error.detail}
        </Text>
      )}
      <Facts
        facts={[
          ["State", <ConnectorState key="state" state={one.state} />],
          ["Held up since", time(one.error?.since ?? null)],
          ["Name", one.name],
          ["Client", one.client],
          ["Stream", one.stream],
          ["Kind", one.kind],
          ["Address", one.address],
          ["Rows to be read", one.lag === null ? "–" : whole(one.lag)],
          ["Without such rows", time(one.caught_up_at)],
          ["Rows read", whole(one.rows)],
          ["Set aside", whole(one.refused)],
          ["Rows read last", time(one.row_at)],
          ["At a refused row", one.on_refusal === "stop" ? "stops" : "sets it aside"],
          ["Position", one.position === "" ? "–" : one.position],
          ["Created", <Moment key="created" at={one.created_at} />],
        ]}
      />
    </>
  );
}

function Shown({ title, value }: { title: string; value: object }) {
  return (
    <section>
      <Title order={2} mb="xs">
        {title}
      </Title>
      <Code block tabIndex={0}>
        {JSON.stringify(value, null, 2)}
      </Code>
    </section>
  );
}
