import { type Faults, numberIn } from "../api/address";
import type { Attributes } from "../pairs/pairs";
import type { Wish } from "./frames";

/** What the page listens to, as it stands in the address, so that it can be kept and shared. Nothing may be listened to with faults. */
export function wishOf(zone: string, search: URLSearchParams, faults: Faults): Wish | undefined {
  const from = fromAt(search, faults);
  const attributes = attributesAt(search, faults);
  const stream = search.get("stream");
  if (stream === null || stream === "") return undefined;
  return {
    zone,
    stream,
    from,
    domain: search.get("domain") ?? undefined,
    type: search.get("type") ?? undefined,
    attributes,
  };
}

export function searchOf({ stream, from, domain, type, attributes }: Omit<Wish, "zone">): URLSearchParams {
  const search = new URLSearchParams({ stream });
  if (from !== "now" && typeof from !== "object") search.set("from", String(from));
  if (domain) search.set("domain", domain);
  if (type) search.set("type", type);
  if (Object.keys(attributes).length > 0) search.set("attributes", JSON.stringify(attributes));
  return search;
}

function fromAt(search: URLSearchParams, faults: Faults): Wish["from"] {
  const text = search.get("from") ?? "now";
  if (text === "oldest" || text === "now") return text;
  const sequence = numberIn(text);
  if (sequence === undefined) faults.from = "Not oldest, and not a sequence from 1 to 999999999999999.";
  return sequence ?? "now";
}

function attributesAt(search: URLSearchParams, faults: Faults): Attributes {
  const text = search.get("attributes");
  if (text === null) return {};
  const found = parsed(text);
  if (isAttributes(found)) return found;
  faults.attributes = "Not a JSON object of texts, numbers, true, false and null.";
  return {};
}

function isAttributes(found: unknown): found is Attributes {
  if (typeof found !== "object" || found === null || Array.isArray(found)) return false;
  return Object.values(found).every((value) => value === null || ["string", "number", "boolean"].includes(typeof value));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
