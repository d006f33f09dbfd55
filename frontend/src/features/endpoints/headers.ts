import type { Endpoint, EndpointChange } from "./endpoints";

/** A header in the form. The value of one that is set is not known; empty: it stays. */
export interface HeaderRow {
  name: string;
  value: string;
  set: boolean;
}

export function rowsOf({ headers }: Endpoint): HeaderRow[] {
  return (headers ?? []).map(({ name }) => ({ name, value: "", set: true }));
}

/** Return the change from the headers that are set to those of the form: a removed one is null. */
export function headersChange(before: readonly HeaderRow[], rows: readonly HeaderRow[]): NonNullable<EndpointChange["headers"]> {
  const kept = new Set(rows.filter(({ set }) => set).map(({ name }) => name));
  const removed = before.filter(({ name }) => !kept.has(name)).map(({ name }) => [name, null] as const);
  const given = rows.filter(({ set, value }) => !set || value !== "").map(({ name, value }) => [name, value] as const);
  return Object.fromEntries<string | null>([...removed, ...given]);
}
