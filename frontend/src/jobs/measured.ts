import { isRaw } from "../api/exact";

const AS_SENT = "attributes"; // of events: they keep what their producer wrote

/** The same with plain numbers: measures such as 26.0 are to be counted with, not shown digit by digit. */
export function measured<T>(value: T): T {
  return plain(value) as T;
}

function plain(value: unknown): unknown {
  if (isRaw(value)) return Number(value.rawJSON);
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, name === AS_SENT ? part : plain(part)]));
}
