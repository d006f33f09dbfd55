import { SimpleGrid, Text } from "@mantine/core";

import { Judgement } from "../jobs/Judgement";
import { type Row, Rows } from "../jobs/Rows";
import type { ResultProps } from "../jobs/types";
import { named } from "../jobs/words";
import { Card } from "../../parts/Card";
import { Figure } from "../../parts/Figure";
import { whole } from "../../parts/text";
import { type AuditDetails, auditOf } from "./audit";
import { Findings } from "./Findings";
import { Hours } from "./Hours";
import { ClientLink, StreamLink } from "../streams/links";

const IDS = ["stream_id", "zone_id", "client_id"]; // internal ids, which no page shows

/** The result of an audit: its verdict first, then the evidence. */
export function AuditResult({ zone, run }: ResultProps) {
  const found = auditOf(run);
  const { finding_count: count, streams, clients, listeners } = found;
  const client = { client: (row: Row) => <ClientLink zone={textAt(row, "zone") || zone} client={textAt(row, "client")} /> };
  return (
    <>
      <Judgement run={run} word={run.verdict === "ok" ? "No findings" : `${whole(count)} ${count === 1 ? "finding" : "findings"}`} />
      {found.findings.length > 0 && <Findings zone={zone} found={found} />}
      <Deliveries deliveries={found.deliveries} />
      <Hours hours={found.hours} />
      <Rows title="Streams" rows={streams} hides={IDS} cells={{ stream: (row) => <StreamLink zone={textAt(row, "zone") || zone} stream={textAt(row, "stream")} /> }} />
      <Rows title="Clients, by callbacks" rows={clients} hides={IDS} cells={client} />
      <Rows title="Clients, by connections" rows={listeners} hides={IDS} cells={client} />
      <Unknown parts={found.unknown} />
    </>
  );
}

function textAt(row: Row, name: string): string {
  const value = row[name];
  return typeof value === "string" ? value : "";
}

const ABOUT: Record<string, string> = {
  matched: "pairs of an event and an endpoint",
  deliveries: "written, or being written",
  delivered: "with a successful attempt",
  pending: "waiting for an attempt",
  dead_lettered: "no attempt succeeded; announced",
  cancelled: "their endpoint or registration was deleted",
  not_delivered: "matched, but no delivery was written",
  late: "delivered after more than a minute",
  retried: "more than one attempt",
  repeats: "attempts after a successful one",
  undelivered: "matched, but not delivered yet",
  expired: "the event expired before it was matched or posted",
  skipped: "dropped before they were matched; announced by a gap notice",
  unknown: "the evidence no longer exists",
};
const ALWAYS: readonly string[] = ["matched", "deliveries", "delivered", "undelivered"]; // others only if not zero

function Deliveries({ deliveries }: { deliveries: AuditDetails["deliveries"] }) {
  const all = Object.entries(deliveries);
  const counts = all.filter(([name, value]) => !name.endsWith("_ms") && (ALWAYS.includes(name) || (value ?? 0) > 0));
  const times = all.filter(([name, value]) => name.endsWith("_ms") && value !== null);
  if (counts.length === 0) return null;
  return (
    <SimpleGrid cols={{ base: 2, sm: 3, lg: 4 }} spacing="md" role="group" aria-label="Deliveries">
      {counts.map(([name, value]) => (
        <Figure key={name} label={named(name)} value={whole(value ?? 0)} about={ABOUT[name]} />
      ))}
      {times.map(([name, value]) => (
        <Figure key={name} label={`${name.slice(1, -3)} % within`} value={`${whole(Math.round(value ?? 0))} ms`} about="from the event to its delivery" />
      ))}
    </SimpleGrid>
  );
}

function Unknown({ parts }: { parts: AuditDetails["unknown"] }) {
  return (
    <Card title="Unknown">
      <div style={{ padding: "0 16px 16px" }}>
        {parts.length === 0 ? (
          <Text size="sm" c="dimmed">
            None: everything requested was checked.
          </Text>
        ) : (
          <ul style={{ margin: 0, paddingLeft: 18, fontSize: 14 }} aria-label="Unknown">
            {parts.map(({ subject, reason }) => (
              <li key={`${subject} ${reason}`}>
                <b>{subject}</b>: {reason}
              </li>
            ))}
          </ul>
        )}
      </div>
    </Card>
  );
}
