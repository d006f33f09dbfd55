import { SimpleGrid, Text } from "@mantine/core";
import type { ReactNode } from "react";

import { Card } from "../../parts/Card";
import { Facts } from "../../parts/Facts";
import type { OneRun } from "./types";
import { named, valued } from "./words";

/** A run's figures and parameters. */
export function RunAbout({ run: { figures, params } }: { run: OneRun }) {
  const entries = Object.entries(params);
  const found = Object.entries(figures);
  return (
    <SimpleGrid cols={{ base: 1, md: found.length > 0 ? 2 : 1 }} spacing="md" style={{ alignItems: "start" }}>
      {found.length > 0 && (
        <Card title="Figures">
          <Padded>
            <Facts facts={found.map(([name, value]) => [named(name), valued(name, value)])} />
          </Padded>
        </Card>
      )}
      <Card title="Parameters">
        <Padded>
          {entries.length === 0 ? (
            <Text size="sm" c="dimmed">
              None: the whole hub.
            </Text>
          ) : (
            <Facts facts={entries.map(([name, value]) => [named(name), <span key={name} className={isText(value) ? undefined : "mono"}>{valued(name, value)}</span>])} />
          )}
        </Padded>
      </Card>
    </SimpleGrid>
  );
}

function Padded({ children }: { children: ReactNode }) {
  return <div style={{ padding: "0 16px 16px" }}>{children}</div>;
}

function isText(value: unknown): boolean {
  return typeof value !== "object";
}
