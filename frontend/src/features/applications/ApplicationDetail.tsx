import { Stack, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";

import { Facts } from "../../parts/Facts";
import { Loading } from "../../parts/Loading";
import { May } from "../../parts/May";
import { Moment } from "../../parts/Moment";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { Removal } from "../../parts/Removal";
import { State } from "../../parts/State";
import { duration } from "../../parts/text";
import { KeyHistory } from "../state/KeyDetail";
import { type Application, oneApplication, STREAM, useDeleteApplication } from "./applications";
import { MonitorForm } from "./MonitorForm";
import { ReportForm } from "./ReportForm";

interface Props {
  zone: string;
  name: string;
  onDeleted: () => void;
}

/** One application: its state, its actions and the history of its events. */
export function ApplicationDetail({ zone, name, onDeleted }: Props) {
  const { data, error, isError, refetch } = useQuery(oneApplication(zone, name));
  const remove = useDeleteApplication(zone, name);
  if (isError && data === undefined) return <ProblemAlert error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading h={260} />;
  return (
    <Stack gap="lg">
      <About application={data} />
      <May>
        <section>
          <Title order={2} mb="xs">
            Report a state
          </Title>
          <ReportForm key={data.reported_at} zone={zone} name={name} onReported={() => void refetch()} />
        </section>
        <section>
          <Title order={2} mb="xs">
            Monitoring
          </Title>
          <MonitorForm key={data.timeout_s} zone={zone} application={data} />
        </section>
      </May>
      <KeyHistory zone={zone} stream={STREAM} name={name} />
      <div>
        <Removal
          title={`Delete the application ${name}?`}
          about="It is removed from its groups as well. The next report of its state creates it again."
          removal={remove}
          onConfirm={() => remove.mutate(undefined, { onSuccess: onDeleted })}
        />
      </div>
    </Stack>
  );
}

function About({ application: one }: { application: Application }) {
  return (
    <Facts
      facts={[
        ["State", <State key="state" state={one.state} />],
        ["Reason", one.reason === "" ? "–" : one.reason],
        ["Since", <Moment key="since" at={one.since} />],
        ["Reported state", <State key="reported" state={one.reported_state} />],
        ["Last report", <Moment key="report" at={one.reported_at} />],
        ["Last heartbeat", <Moment key="heartbeat" at={one.heartbeat_at} />],
        ["Heartbeat time-out", one.timeout_s === null ? "not monitored" : duration(one.timeout_s)],
      ]}
    />
  );
}
