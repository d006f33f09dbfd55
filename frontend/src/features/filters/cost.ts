import type { components } from "../../api/schema";

type Cost = components["schemas"]["Cost"];
type Reach = Cost["reached_by"][number];

const SHOWN_MAX = 4;

/** Return the events for which a filter is evaluated, as texts without repetitions. */
export function reaches({ reached_by: found }: Cost): string[] {
  const all = [...new Set(found.map(words))];
  const more = all.length - SHOWN_MAX;
  return more > 0 ? [...all.slice(0, SHOWN_MAX), `${more} more`] : all;
}

/** Return the work per such event, and its share of the client's budget, as a text. */
export function work({ pairs, tests, every_event_cost: cost }: Cost): string {
  const parts = [pairs > 0 && some(pairs, "value"), tests > 0 && `${some(tests, "test")} one by one`].filter(Boolean);
  const done = parts.length === 0 ? "no further tests" : `up to ${parts.join(" and ")}`;
  return cost === 0 ? done : `${done}; takes ${cost} of the client's budget on each stream`;
}

function words({ by, names }: Reach): string {
  switch (by) {
    case "pair":
      return names.length === 1 ? `events with the requested value of ${listed(names)}` : `events with the requested values of ${listed(names)}, the rarest first`;
    case "attribute":
      return `events that have ${listed(names)}`;
    case "gate":
      return `events of the requested ${listed(names)}`;
    case "event":
      return "every event";
  }
}

function listed(names: readonly string[]): string {
  const shown = names.slice(0, SHOWN_MAX);
  const more = names.length - shown.length;
  const all = more > 0 ? [...shown, `${more} more`] : shown;
  return all.length < 2 ? all.join("") : `${all.slice(0, -1).join(", ")} and ${all.at(-1) ?? ""}`;
}

function some(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
