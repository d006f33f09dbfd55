import { Alert, Text } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";

import { Card } from "../../parts/Card";
import { Facts } from "../../parts/Facts";
import { State } from "../../parts/State";
import type { Jobs } from "./types";

/** The Spark master, and whether jobs can run. */
export function SparkState({ spark: { master, java, problem } }: { spark: Jobs["spark"] }) {
  return (
    <Card title="Spark" aside={<State state={problem === "" ? "ok" : "problems"} label={problem === "" ? "ready" : "not ready"} />}>
      <div style={{ padding: "0 16px 16px" }}>
        {problem !== "" && (
          <Alert color="red" variant="light" icon={<IconAlertTriangle />} role="alert" title="Jobs that need Spark cannot run" mb="sm">
            <Text size="sm">{problem}</Text>
          </Alert>
        )}
        <Facts
          facts={[
            ["Master", <span key="master" className="mono">{master}</span>],
            ["Java", java ?? "none found"],
          ]}
        />
      </div>
    </Card>
  );
}
