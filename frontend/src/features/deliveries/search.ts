import { type Faults, numberAt } from "../../api/address";
import { type DeliveryFilter, type DeliveryState, STATES } from "./deliveries";

export interface DeliverySearch {
  filter: DeliveryFilter;
  faults: Faults;
}

/** The filter as it stands in the address. */
export function searchRequestOf(search: URLSearchParams): DeliverySearch {
  const faults: Faults = {};
  const endpoint = numberAt(search, "endpoint", faults);
  const sequence = numberAt(search, "sequence", faults);
  const stream = search.get("stream") ?? undefined;
  const state = stateAt(search, faults);
  if (endpoint !== undefined) return { filter: { endpoint, state }, faults };
  if (stream !== undefined && !search.has("sequence")) faults.stream = "Without the sequence of an event.";
  if (sequence !== undefined && stream === undefined) faults.sequence = "Without the stream of the event.";
  const filter = { stream, sequence, state };
  return { filter: stream !== undefined && sequence !== undefined ? filter : { state }, faults };
}

export function searchOf(filter: DeliveryFilter): URLSearchParams {
  const given = Object.entries(filter).filter(([, value]) => value !== undefined);
  return new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
}

/** The same address with a delivery open, or with none. */
export function opening(search: URLSearchParams, delivery: string | undefined): URLSearchParams {
  const next = new URLSearchParams(search);
  if (delivery === undefined) next.delete("delivery");
  else next.set("delivery", delivery);
  return next;
}

function stateAt(search: URLSearchParams, faults: Faults): DeliveryState | undefined {
  const text = search.get("state") ?? "";
  const state = STATES.find((one) => one === text);
  if (text !== "" && state === undefined) faults.state = `Not one of ${STATES.join(", ")}.`;
  return state;
}
