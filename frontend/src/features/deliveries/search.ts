import { type Faults, numberAt, timeAt } from "../../api/address";
import { type DeliveryFilter, type DeliveryState, SELECTING, STATES } from "./deliveries";

export interface DeliverySearch {
  filter: DeliveryFilter;
  faults: Faults;
}

/** The filter as it stands in the address. */
export function searchRequestOf(search: URLSearchParams): DeliverySearch {
  const faults: Faults = {};
  const filter: DeliveryFilter = {
    endpoint: numberAt(search, "endpoint", faults),
    stream: textAt(search, "stream"),
    sequence: numberAt(search, "sequence", faults),
    state: stateAt(search, STATES, faults),
    client: textAt(search, "client"),
    outcome: textAt(search, "outcome"),
    status: numberAt(search, "status", faults),
    type: textAt(search, "type"),
    event: textAt(search, "event"),
    since: timeAt(search, "since", faults),
    until: timeAt(search, "until", faults),
  };
  if (filter.sequence !== undefined) {
    if (filter.stream === undefined) faults.sequence = "A sequence needs a stream. Choose the stream of the event.";
    for (const name of SELECTING) if (filter[name] !== undefined) faults[name] = "Cannot be combined with a sequence. Remove one of them.";
  }
  return { filter, faults };
}

export function searchOf(filter: object): URLSearchParams {
  const given = Object.entries(filter).filter(([, value]) => value !== undefined && value !== "");
  return new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
}

/** The same address with a delivery open, or with none. */
export function opening(search: URLSearchParams, delivery: string | undefined): URLSearchParams {
  const next = new URLSearchParams(search);
  if (delivery === undefined) next.delete("delivery");
  else next.set("delivery", delivery);
  return next;
}

/** Read a text from the address; undefined if it is missing or empty. */
export function textAt(search: URLSearchParams, name: string): string | undefined {
  return search.get(name) || undefined;
}

/** Read a state, one of some, from the address. */
export function stateAt<T extends DeliveryState>(search: URLSearchParams, states: readonly T[], faults: Faults): T | undefined {
  const text = search.get("state") ?? "";
  const state = states.find((one) => one === text);
  if (text !== "" && state === undefined) faults.state = `Not one of ${states.join(", ")}.`;
  return state;
}
