import { SimpleGrid, Text } from "@mantine/core";

import { Judgement } from "../jobs/Judgement";
import { type Row, Rows } from "../jobs/Rows";
import type { ResultProps } from "../jobs/types";
import { named } from "../jobs/words";
import { Card } from "../parts/Card";
import { Figure } from "../parts/Figure";
import { whole } from "../parts/text";
import { type AuditDetails, auditOf } from "./audit";
import { Findings } from "./Findings";
import { Hours } from "./Hours";
import { ClientLink, StreamLink } from "./links";

const IDS = ["stream_id", "zone_id", "client_id"]; // the hub's own numbers, which lead nowhere

/** What an audit found: its verdict first, then why. */
export function AuditResult({ zone, run }: ResultProps) {
  const found = auditOf(run);
  const { finding_count: count, streams, clients, replays, listeners } = found;
  const client = { client: (row: Row) => <ClientLink zone={textAt(row, "zone") || zone} client={textAt(row, "client")} /> };
  return (
    <>
      <Judgement run={run} word={run.verdict === "ok" ? "No problem was found" : `${whole(count)} ${count === 1 ? "problem was" : "problems were"} found`} />
      {found.findings.length > 0 && <Findings zone={zone} found={found} />}
      <Deliveries deliveries={found.deliveries} />
      <Hours hours={found.hours} />
      <Rows title="Streams" rows={streams} hides={IDS} cells={{ stream: (row) => <StreamLink zone={textAt(row, "zone") || zone} stream={textAt(row, "stream")} /> }} />
      <Rows title="Clients, by callbacks" rows={clients} hides={IDS} cells={client} />
      <Rows title="Clients, by connections" rows={listeners} hides={IDS} cells={client} />
      <Rows title="Replays" rows={replays} hides={IDS} />
      <NotKnown parts={found.not_known} />
    </>
  );
}

function textAt(row: Row, name: string): string {
  const value = row[name];
  return typeof value === "string" ? value : "";
}

const ABOUT: Record<string, string> = {
  matched: "events and endpoints that want them",
  owed: "with a delivery, or due one",
  delivered: "with an attempt that succeeded",
  pending: "still tried",
  dead_lettered: "all attempts failed",
  cancelled: "their endpoint or registration ended",
  not_delivered: "matched, and no delivery was written",
  late: "delivered after its time",
  retried: "more than one attempt",
  repeats: "attempts after one that succeeded",
  undelivered: "matched, and not delivered so far",
  expired: "the event expired before it was matched, or before it was posted",
  skipped: "gone before they were matched; a notice of the gap said so",
  unknown: "nobody can say any more",
};
const ALWAYS: readonly string[] = ["matched", "owed", "delivered", "undelivered"]; // others where there are any

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

function NotKnown({ parts }: { parts: AuditDetails["not_known"] }) {
  return (
    <Card title="What is not known">
      <div style={{ padding: "0 16px 16px" }}>
        {parts.length === 0 ? (
          <Text size="sm" c="dimmed">
            Nothing: all that was asked for could be checked.
          </Text>
        ) : (
          <ul style={{ margin: 0, paddingLeft: 18, fontSize: 14 }} aria-label="What is not known">
            {parts.map(({ what, why }) => (
              <li key={`${what} ${why}`}>
                <b>{what}</b>: {why}
              </li>
            ))}
          </ul>
        )}
      </div>
    </Card>
  );
}
