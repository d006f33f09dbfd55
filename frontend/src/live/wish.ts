import type { Attributes } from "../pairs/pairs";
import type { Wish } from "./frames";

/** What the page listens to, as it stands in the address, so that it can be kept and shared. */
export function wishOf(zone: string, search: URLSearchParams): Wish | undefined {
  const stream = search.get("stream");
  if (stream === null || stream === "") return undefined;
  return {
    zone,
    stream,
    from: fromOf(search.get("from") ?? "now"),
    domain: search.get("domain") ?? undefined,
    type: search.get("type") ?? undefined,
    attributes: parsed(search.get("attributes")),
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

function fromOf(text: string): Wish["from"] {
  if (text === "oldest") return "oldest";
  return /^[0-9]{1,15}$/.test(text) ? Number(text) : "now";
}

function parsed(text: string | null): Attributes {
  try {
    const found: unknown = JSON.parse(text ?? "{}");
    return typeof found === "object" && found !== null ? (found as Attributes) : {};
  } catch {
    return {};
  }
}
