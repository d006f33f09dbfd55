import { stateText, whole } from "../../parts/text";
import type { Replay } from "./replays";

export const SOURCES = { log: "events of the log", deliveries: "failed deliveries" } as const;

export const WAITS: Record<Exclude<Replay["waits_for"], "">, string> = {
  endpoint: "Waiting: the endpoint is disabled. The run continues when it is enabled.",
  backlog: "Waiting: the endpoint has too many pending deliveries. The run continues at the speed of the receiver.",
  forwarder: "Waiting: the forwarders have not matched these events yet.",
  archive: "Waiting: the archive cannot be read at present.",
};

/** What a run sends, in a line. */
export function selectionText({ source, selection: found }: Replay): string {
  if (source === "deliveries") {
    const cause = [found.outcome?.replaceAll("_", " "), found.status].filter((one) => one != null).join(" ");
    return (found.states ?? []).map(stateText).join(", ") + (cause === "" ? "" : `: ${cause}`);
  }
  const ranges = (found.ranges ?? []).map(rangeText).join("; ");
  return found.registration === null ? ranges : `${ranges}; registration ${found.registration}`;
}

type Range = NonNullable<Replay["selection"]["ranges"]>[number];

/** `orders 1 to 20`. */
export function rangeText({ stream, after, last }: Range): string {
  return last <= after ? `${stream}: nothing` : `${stream} ${whole(after + 1)} to ${whole(last)}`;
}
