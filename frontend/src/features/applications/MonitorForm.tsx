import { Button } from "@mantine/core";
import { useState } from "react";

import { errorAt } from "../../api/problem";
import { AmountInput, TIMES } from "../../parts/AmountInput";
import { Form } from "../../parts/Form";
import { type Application, useMonitor } from "./applications";

/** Starts and stops the monitoring of an application's heartbeats. */
export function MonitorForm({ zone, application }: { zone: string; application: Application }) {
  const monitor = useMonitor(zone, application.name);
  const [timeout, setTimeout] = useState<number | null>(application.timeout_s ?? 60);
  const isMonitored = application.timeout_s !== null;
  return (
    <Form
      fields={["timeout_s"]}
      error={monitor.error}
      busy={monitor.isPending}
      action={isMonitored ? "Change the time-out" : "Start monitoring"}
      ready={timeout !== null && timeout !== application.timeout_s}
      onSubmit={() => monitor.mutate(timeout)}
      aside={
        isMonitored && (
          <Button variant="default" loading={monitor.isPending} onClick={() => monitor.mutate(null)}>
            Stop monitoring
          </Button>
        )
      }
    >
      <AmountInput
        label="Heartbeat time-out"
        description="Without a heartbeat or report for this long, the application is set offline."
        units={TIMES}
        value={timeout}
        required
        onChange={setTimeout}
        error={errorAt(monitor.error, "timeout_s")}
      />
    </Form>
  );
}
