import { Select, Text } from "@mantine/core";
import { useSearchParams } from "react-router";

import { named } from "../jobs/words";
import { Card } from "../../parts/Card";
import { type Column, DataTable } from "../../parts/DataTable";
import { grouped } from "../../parts/grouped";
import { State } from "../../parts/State";
import { whole } from "../../parts/text";
import type { AuditDetails, Finding } from "./audit";
import { ClientLink, EndpointLink, RegistrationLink, SegmentLink, SequenceLink, StreamLink } from "../streams/links";

/** The findings, with links to what they concern; the selected kind is part of the address. */
export function Findings({ zone, found: { findings, finding_count: count } }: { zone: string; found: AuditDetails }) {
  const [search, setSearch] = useSearchParams();
  const kinds = grouped(findings, ({ kind }) => kind);
  const kind = kinds.some(([one]) => one === search.get("kind")) ? search.get("kind") : null;
  const shown = findings.filter((finding) => kind === null || finding.kind === kind);
  const choice = (
    <Select
      aria-label="Kind"
      size="xs"
      placeholder={`all kinds (${whole(findings.length)})`}
      data={kinds.map(([value, those]) => ({ value, label: `${named(value)} (${whole(those.length)})` }))}
      value={kind}
      onChange={(next) => setSearch(next === null ? {} : { kind: next }, { replace: true })}
      clearable
      clearButtonProps={{ "aria-label": "All kinds" }}
      w={{ base: 200, xs: 280 }}
    />
  );
  return (
    <Card title="Findings" aside={choice}>
      <DataTable
        label="Findings"
        items={shown.map((finding, at) => ({ ...finding, at }))}
        columns={columnsOf(zone, findings)}
        keyOf={({ at }) => String(at)}
        minWidth={1040}
      />
      {count > findings.length && (
        <Text size="sm" c="dimmed" p="md">
          The first {whole(findings.length)} of {whole(count)}. The files below contain all.
        </Text>
      )}
    </Card>
  );
}

function columnsOf(own: string, findings: readonly Finding[]): Column<Finding>[] {
  const zoneOf = ({ zone }: Finding) => zone || own; // the stream `system` is in all zones
  const abroad = findings.some(({ zone }) => zone !== "" && zone !== own);
  const all: (Column<Finding> & { has?: keyof Finding })[] = [
    { title: "Kind", cell: ({ kind }) => <State state="problems" label={named(kind)} /> },
    { title: "Finding", cell: (finding) => <Wrong finding={finding} />, width: 460 },
    ...(abroad ? [{ title: "Zone", cell: ({ zone }: Finding) => zone || "–" }] : []),
    { title: "Stream", has: "stream", cell: (finding) => (finding.stream ? <StreamLink zone={zoneOf(finding)} stream={finding.stream} /> : "–") },
    { title: "Sequences", has: "first", right: true, cell: (finding) => <Sequences zone={zoneOf(finding)} finding={finding} /> },
    {
      title: "Segment",
      has: "segment",
      cell: (finding) => (finding.segment && finding.stream ? <SegmentLink zone={zoneOf(finding)} stream={finding.stream} segment={finding.segment} /> : "–"),
    },
    {
      title: "Registration",
      has: "registration",
      cell: (finding) => (finding.registration ? <RegistrationLink zone={zoneOf(finding)} id={finding.registration} /> : "–"),
    },
    { title: "Endpoint", has: "endpoint", cell: (finding) => (finding.endpoint ? <EndpointLink zone={zoneOf(finding)} id={finding.endpoint} /> : "–") },
    { title: "Client", has: "client", cell: (finding) => (finding.client ? <ClientLink zone={zoneOf(finding)} client={finding.client} /> : "–") },
  ];
  return all.filter(({ has }) => has === undefined || findings.some((finding) => finding[has]));
}

function Sequences({ zone, finding: { stream, first, last } }: { zone: string; finding: Finding }) {
  if (!stream || first === null) return "–";
  return <SequenceLink zone={zone} stream={stream} first={first} last={last ?? first} />;
}

function Wrong({ finding: { detail, evidence } }: { finding: Finding }) {
  return (
    <div style={{ whiteSpace: "normal", overflowWrap: "anywhere", minWidth: 260 }}>
      {detail}
      {evidence && (
        <Text size="xs" c="dimmed">
          {evidence}
        </Text>
      )}
    </div>
  );
}
