import type { Position } from "./patterns";

/** An output of a pattern, of a dry run or a back-test. */
export interface Output {
  output: "match" | "notify" | "announce" | "dropped" | "ended" | "failed" | "suspended";
  key?: unknown;
  bindings?: Record<string, Position[]> | null; // null: too long
  event?: { domain: string; type: string; attributes: Record<string, unknown> } | null;
  fault?: { code: string; message: string };
  reason?: string; // of what was discarded
  count?: number;
}

/** What an output has, in a line: its events, the event that it announces, or its fault. */
export function outputText({ bindings, event, fault, reason, count }: Output): string {
  if (fault !== undefined) return `${fault.code}: ${fault.message}`;
  if (reason !== undefined) return `${reason}: ${count ?? 1}`;
  if (event != null) return `${event.domain === "" ? "" : `${event.domain}::`}${event.type} ${JSON.stringify(event.attributes)}`;
  if (bindings === null) return "(too long)";
  return boundText(bindings ?? {});
}

/** The events of each variable. */
export function boundText(bindings: Record<string, Position[]>): string {
  return Object.entries(bindings)
    .map(([name, bound]) => `${name} = ${bound.map(positionText).join(", ")}`)
    .join("; ");
}

/** The position of an event in words; of one that a pattern created, its type. */
export function positionText({ order, type, stream, sequence }: Position): string {
  if (sequence === undefined) return type ?? "";
  return stream === undefined ? `event ${order ?? sequence}` : `${stream} ${sequence}`;
}
