import { Alert, List } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";

import { Moment } from "../../parts/Moment";
import { capital } from "../../parts/text";
import { LABELS, type Overview } from "./readings";

const WELL = ["ok", "off", "starting"];

/** The components that do not work, with reasons and times. */
export function Degraded({ health }: { health: Overview["health"] }) {
  if (health === null || health.status === "ready") return null;
  const wrong = health.components.filter(({ status }) => !WELL.includes(status));
  return (
    <Alert color={health.status === "degraded" ? "yellow" : "red"} variant="light" icon={<IconAlertTriangle />} role="alert" data-reading title={`The hub is ${health.status}`}>
      <List size="sm" spacing={4}>
        {wrong.map(({ name, reason, since }) => (
          <List.Item key={name}>
            <b>{LABELS[name] ?? capital(name)}:</b> {reason}
            {since !== null && (
              <>
                {" "}
                Since <Moment at={since} />.
              </>
            )}
          </List.Item>
        ))}
      </List>
    </Alert>
  );
}
