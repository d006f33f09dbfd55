import type { Registration } from "./registrations";

/** Return a registration's filter in one line. */
export function summary({ domain, type, application, attributes, filter, predicate }: Registration): string {
  if (filter !== null) return typeof filter === "string" ? filter : predicate;
  const pairs = Object.entries(attributes).map(([name, value]) => `${name} = ${JSON.stringify(value)}`);
  const parts = [domain && `domain ${domain}`, type && `type ${type}`, application && `application ${application}`, ...pairs].filter(Boolean);
  return parts.length > 0 ? parts.join(", ") : "every event";
}
