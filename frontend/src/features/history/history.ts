import { useInfiniteQuery } from "@tanstack/react-query";

import { readHot } from "../../api/hot";
import type { Cursor, DeliveredEvent, ListenRequest } from "../events/frames";
import { startOf } from "../events/start";

const PAGE_EVENTS = 100;

type Order = "forward" | "backward";

interface PageRequest {
  order: Order;
  from: string; // a start, or the cursor of the last event read
}

interface Answer {
  events: DeliveredEvent[];
  cursor: Cursor; // start of the next page: forward exclusive, backward inclusive
  head: number; // the stream's last sequence
  first: number; // the first retained sequence
}

interface Page extends Answer {
  request: PageRequest;
}

/** Return pages around the requested position; `rows` are newest first. */
export function useHistory(selection: ListenRequest) {
  const list = useInfiniteQuery({
    queryKey: ["history", selection],
    queryFn: async ({ pageParam }) => readPage(selection, pageParam ?? (await firstRequest(selection))),
    initialPageParam: undefined as PageRequest | undefined,
    getNextPageParam: older,
    getPreviousPageParam: newer,
    staleTime: Infinity, // stored events do not change; `newer` requests later ones
    retry: false,
  });
  const rows = (list.data?.pages ?? []).flatMap((page) => newestFirst(page));
  return { ...list, rows, newest: list.data?.pages[0], oldest: list.data?.pages.at(-1) };
}

async function readPage(selection: ListenRequest, request: PageRequest): Promise<Page> {
  const { order, from } = request;
  const { zone, stream, domain, type, application, attributes, language, filter, channels } = selection;
  const query = new URLSearchParams({ from, order, limit: String(PAGE_EVENTS) });
  if (domain) query.set("domain", domain);
  if (type) query.set("type", type);
  if (application) query.set("application", application);
  if (language !== undefined && filter !== undefined) {
    query.set("language", language);
    query.set("filter", filter);
  }
  if (channels.length > 0) query.set("channels", channels.join(","));
  if (Object.keys(attributes).length > 0) query.set("attributes", JSON.stringify(attributes));
  const answer = await readHot<Answer>(zone, `/v1/streams/${encodeURIComponent(stream)}/events`, query);
  return { ...answer, request };
}

async function firstRequest(selection: ListenRequest): Promise<PageRequest> {
  if (selection.from === "now") return { order: "backward", from: "now" };
  const start = await startOf(selection);
  if (typeof start === "string") return { order: "forward", from: start };
  return { order: "forward", from: "time" in start ? start.time : textOf(start) };
}

function older({ request, cursor, first }: Page): PageRequest | undefined {
  if (request.order === "forward") return request.from === "oldest" ? undefined : { order: "backward", from: request.from };
  return cursor.sequence >= first ? { order: "backward", from: textOf(cursor) } : undefined;
}

function newer({ request, events, cursor }: Page): PageRequest {
  const last = request.order === "forward" ? cursor : (events[0] ?? cursor);
  return { order: "forward", from: textOf(last) };
}

function newestFirst({ events, request }: Page): DeliveredEvent[] {
  return request.order === "backward" ? events : [...events].reverse();
}

function textOf({ segment, sequence }: Cursor): string {
  return `${segment}:${sequence}`;
}
