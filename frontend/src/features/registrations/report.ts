/** A registration's report as rows of a form: fields by path, each under a name, and constants. */

import { attributesOf, complaint, KINDS, type Kind, pairsOf } from "../../parts/pairs/pairs";
import type { Registration } from "./registrations";

type Report = Registration["report"];

export const SOURCES = ["field", ...KINDS] as const;

export interface ReportRow {
  name: string; // empty: a field's own
  source: "field" | Kind; // a field of the event, or a constant of that type
  text: string; // the path, or the constant
}

export const NEW_ROW: ReportRow = { name: "", source: "field", text: "" };

/** Return the rows of a report; undefined for the whole event. */
export function rowsOf(report: Report | undefined): ReportRow[] | undefined {
  if (report == null) return undefined;
  if (Array.isArray(report)) return report.map((path) => ({ ...NEW_ROW, text: path }));
  return Object.entries(report).map(([name, source]) => {
    if (typeof source === "string") return { name, source: "field" as const, text: source };
    const [constant] = pairsOf({ [name]: (source as { const: unknown }).const });
    return { name, source: constant?.kind ?? "null", text: constant?.text ?? "" };
  });
}

/** A list of paths where no row has a name of its own. */
export function reportOf(rows: readonly ReportRow[] | undefined): Report {
  if (rows === undefined) return null;
  if (rows.every(({ name, source }) => source === "field" && name === "")) return rows.map(({ text }) => text);
  return Object.fromEntries(rows.map((row) => [row.name || row.text.replace(/^`(.+)`$/, "$1"), sourceOf(row)]));
}

/** Return the mistake in a row, or undefined. */
export function rowComplaint({ name, source, text }: ReportRow): string | undefined {
  if (source === "field") return text.trim() === "" ? "A field is missing." : undefined;
  return complaint({ name, kind: source, text });
}

function sourceOf({ source, text }: ReportRow): unknown {
  if (source === "field") return text;
  return { const: attributesOf([{ name: "const", kind: source, text }]).const };
}
