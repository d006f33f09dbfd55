import { isRaw } from "../../api/exact";

const AS_SENT = "attributes"; // of events: their numbers keep the producer's notation

/** Converts exact numbers to plain ones, for measures such as 26.0, except in events. */
export function measured<T>(value: T): T {
  return plain(value) as T;
}

function plain(value: unknown): unknown {
  if (isRaw(value)) return Number(value.rawJSON);
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, name === AS_SENT ? part : plain(part)]));
}
