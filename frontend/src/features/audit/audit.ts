import type { OneRun } from "../jobs/types";
import type { Row } from "../jobs/Rows";

export interface Finding {
  kind: string;
  zone: string;
  stream: string;
  segment: string | null;
  first: number | null;
  last: number | null;
  registration: number | null;
  endpoint: number | null;
  client: string | null;
  detail: string;
  evidence: string | null;
}

export interface Hour {
  hour: string; // its start
  events: number;
  deliveries: number;
  undelivered: number;
  late: number;
}

/** The details of an audit's result; its lists are bounded, the files are complete. */
export interface AuditDetails {
  findings: Finding[];
  finding_count: number;
  streams: Row[];
  deliveries: Record<string, number | null>;
  hours: Hour[];
  clients: Row[];
  listeners: Row[];
  unknown: { subject: string; reason: string }[];
}

const NOTHING: AuditDetails = { findings: [], finding_count: 0, streams: [], deliveries: {}, hours: [], clients: [], listeners: [], unknown: [] };

export function auditOf({ details }: OneRun): AuditDetails {
  return { ...NOTHING, ...details };
}
