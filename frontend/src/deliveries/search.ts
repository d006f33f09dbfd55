import { type DeliveryFilter, STATES } from "./deliveries";

/** The filter as it stands in the address. */
export function filterOf(search: URLSearchParams): DeliveryFilter {
  const state = STATES.find((one) => one === search.get("state"));
  const endpoint = numberOf(search, "endpoint");
  if (endpoint !== undefined) return { endpoint, state };
  return { stream: search.get("stream") ?? undefined, sequence: numberOf(search, "sequence"), state };
}

export function searchOf(filter: DeliveryFilter): URLSearchParams {
  const given = Object.entries(filter).filter(([, value]) => value !== undefined);
  return new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
}

function numberOf(search: URLSearchParams, name: string): number | undefined {
  const found = Number(search.get(name) ?? "");
  return Number.isSafeInteger(found) && found > 0 ? found : undefined;
}
