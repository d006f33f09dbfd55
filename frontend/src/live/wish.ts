import { type Faults, numberIn } from "../api/address";
import { parseExactly } from "../api/exact";
import { type Attributes, isValue } from "../pairs/pairs";
import type { Wish } from "./frames";

const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/; // RFC 3339

/** What the page listens to, as it stands in the address, so that it can be kept and shared; `own`: the stream of the page. Nothing may be listened to with faults. */
export function wishOf(zone: string, search: URLSearchParams, faults: Faults, own?: string): Wish | undefined {
  const from = fromAt(search, faults);
  const attributes = attributesAt(search, faults);
  const stream = own ?? search.get("stream");
  if (stream === null || stream === "") return undefined;
  return {
    zone,
    stream,
    from,
    domain: search.get("domain") ?? undefined,
    type: search.get("type") ?? undefined,
    attributes,
    channels: search.getAll("channel"),
  };
}

export function searchOf({ stream, from, domain, type, attributes, channels }: Omit<Wish, "zone">): URLSearchParams {
  const search = new URLSearchParams({ stream });
  const start = typeof from !== "object" ? String(from) : "time" in from ? from.time : "now";
  if (start !== "now") search.set("from", start);
  if (domain) search.set("domain", domain);
  if (type) search.set("type", type);
  if (Object.keys(attributes).length > 0) search.set("attributes", JSON.stringify(attributes));
  for (const channel of channels) search.append("channel", channel);
  return search;
}

function fromAt(search: URLSearchParams, faults: Faults): Wish["from"] {
  const text = search.get("from") ?? "now";
  if (text === "oldest" || text === "now") return text;
  if (TIME.test(text) && !Number.isNaN(Date.parse(text))) return { time: text };
  const sequence = numberIn(text);
  if (sequence === undefined) faults.from = "Not oldest, not a time, and not a sequence from 1 to 999999999999999.";
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
  return Object.values(found).every(isValue);
}

function parsed(text: string): unknown {
  try {
    return parseExactly(text);
  } catch {
    return undefined;
  }
}
