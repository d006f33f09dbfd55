import { type Faults, numberIn } from "../../api/address";
import { draftAt } from "../filters/address";
import { type FilterRequest, filterRequestOf, draftOf, isReadable, PAIRS } from "../filters/draft";
import { attributesAt } from "../../parts/pairs/address";
import type { ListenRequest } from "../events/frames";

const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/; // RFC 3339

/** Read the listen request of the address, so that a view can be bookmarked and shared. `own`: the stream of the page. A request with faults must not be sent. */
export function listenRequestOf(zone: string, search: URLSearchParams, faults: Faults, own?: string): ListenRequest | undefined {
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

export function searchOf({ stream, from, domain, type, application, attributes, language, filter, channels }: Omit<ListenRequest, "zone">): URLSearchParams {
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

function fromAt(search: URLSearchParams, faults: Faults): ListenRequest["from"] {
  const text = search.get("from") ?? "now";
  if (text === "oldest" || text === "now") return text;
  if (TIME.test(text) && !Number.isNaN(Date.parse(text))) return { time: text };
  const sequence = numberIn(text);
  if (sequence === undefined) faults.from = "Not oldest, not a time, and not a sequence from 1 to 999999999999999.";
  return sequence ?? "now";
}

/** Return the filter fields of a `listen` message. */
export function filterOf({ domain, type, application, attributes, language, filter }: ListenRequest): Partial<FilterRequest> {
  if (language !== undefined && filter !== undefined) return filterRequestOf({ ...draftOf({ language }), text: filter }) ?? {};
  const pairs = Object.keys(attributes).length > 0 ? { attributes } : {};
  return { domain, type, application, ...pairs };
}
