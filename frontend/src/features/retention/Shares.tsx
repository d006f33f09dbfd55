import { Group, Text, Tooltip } from "@mantine/core";

import { Card } from "../../parts/Card";
import { bytes, whole } from "../../parts/text";
import { type Action, ACTIONS, type Amount, type Plan, type StreamPlan } from "./plan";
import classes from "./Shares.module.css";

/** Bytes of each stream by action, the largest stream first. */
export function Shares({ plan: { streams } }: { plan: Plan }) {
  if (streams.length === 0) return null;
  return (
    <Card title="Each stream's bytes" aside={<Legend />}>
      <ul style={{ listStyle: "none", margin: 0, padding: "0 0 10px" }} aria-label="Each stream's bytes">
        {streams.map((stream) => (
          <Share key={`${stream.zone} ${stream.stream}`} stream={stream} />
        ))}
      </ul>
    </Card>
  );
}

function Share({ stream }: { stream: StreamPlan }) {
  const name = stream.zone === "" ? stream.stream : `${stream.zone} / ${stream.stream}`;
  const parts = ACTIONS.map((action): [Action, Amount] => [action, stream[action]]).filter(([, { segments }]) => segments > 0);
  return (
    <li className={classes.row}>
      <span className={classes.name} title={name}>
        {name}
      </span>
      <span className={classes.bar} role="img" aria-label={parts.map(said).join(", ")}>
        {parts.map(([action, amount]) => (
          <Tooltip key={action} label={said([action, amount])}>
            <span className={classes.part} data-action={action} style={{ flexGrow: Math.max(1, amount.bytes), flexBasis: 0 }} />
          </Tooltip>
        ))}
      </span>
      <span className={classes.size}>{bytes(parts.reduce((all, [, amount]) => all + amount.bytes, 0))}</span>
    </li>
  );
}

function Legend() {
  return (
    <Group gap="md">
      {ACTIONS.map((action) => (
        <Group key={action} gap={6}>
          <span className={classes.key} data-action={action} aria-hidden />
          <Text size="xs" c="dimmed">
            {action}
          </Text>
        </Group>
      ))}
    </Group>
  );
}

function said([action, { segments, bytes: size }]: [Action, Amount]): string {
  return `${action}: ${bytes(size)} in ${whole(segments)} ${segments === 1 ? "segment" : "segments"}`;
}
