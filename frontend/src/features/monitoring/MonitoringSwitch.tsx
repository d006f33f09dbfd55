import { Switch } from "@mantine/core";

import { ProblemAlert } from "../../parts/ProblemAlert";
import { type Monitoring, useMonitoring, useSwitchMonitoring } from "./monitoring";

interface Props {
  zone: string;
  kind: keyof Monitoring;
  label: string;
}

/** Switches events about clients or API calls of the zone on and off. */
export function MonitoringSwitch({ zone, kind, label }: Props) {
  const monitoring = useMonitoring(zone);
  const change = useSwitchMonitoring(zone);
  if (monitoring.isError) return <ProblemAlert error={monitoring.error} onRetry={() => void monitoring.refetch()} />;
  if (change.isError) return <ProblemAlert error={change.error} onRetry={() => change.reset()} />;
  return (
    <Switch
      label={label}
      checked={monitoring.data?.[kind] ?? false}
      disabled={monitoring.data === undefined || change.isPending}
      onChange={(event) => change.mutate({ [kind]: event.currentTarget.checked })}
    />
  );
}
