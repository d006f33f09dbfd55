import { type Faults, numberIn } from "../../api/address";
import { draftAt } from "../filters/address";
import { type AskedFilter, askedOf, draftOf, isReadable, PAIRS } from "../filters/draft";
import { attributesAt } from "../../parts/pairs/address";
import type { Wish } from "../events/frames";

const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/; // RFC 3339

/** What the page listens to, as it stands in the address, so that it can be kept and shared; `own`: the stream of the page. Nothing may be listened to with faults. */
export function wishOf(zone: string, search: URLSearchParams, faults: Faults, own?: string): Wish | undefined {
  const from = fromAt(search, faults);
  const attributes = attributesAt(search, faults);
  const draft = draftAt(search, faults);
  if (!isReadable(draft)) faults.filter = "Not JSON.";
  const { language, text } = draft;
  const stream = own ?? search.get("stream");
  if (stream === null || stream === "") return undefined;
  return {
    zone,
    stream,
    from,
    domain: search.get("domain") ?? undefined,
    type: search.get("type") ?? undefined,
    application: search.get("application") ?? undefined,
    attributes,
    ...(language === PAIRS || text.trim() === "" ? {} : { language, filter: text }),
    channels: search.getAll("channel"),
  };
}

export function searchOf({ stream, from, domain, type, application, attributes, language, filter, channels }: Omit<Wish, "zone">): URLSearchParams {
  const search = new URLSearchParams({ stream });
  const start = typeof from !== "object" ? String(from) : "time" in from ? from.time : "now";
  if (start !== "now") search.set("from", start);
  if (domain) search.set("domain", domain);
  if (type) search.set("type", type);
  if (application) search.set("application", application);
  if (language !== undefined && filter !== undefined) {
    search.set("language", language);
    search.set("filter", filter);
  }
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

/** The filter as a message has it. */
export function filterOf({ domain, type, application, attributes, language, filter }: Wish): Partial<AskedFilter> {
  if (language !== undefined && filter !== undefined) return askedOf({ ...draftOf({ language }), text: filter }) ?? {};
  const pairs = Object.keys(attributes).length > 0 ? { attributes } : {};
  return { domain, type, application, ...pairs };
}
