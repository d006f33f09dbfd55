import { useInfiniteQuery } from "@tanstack/react-query";

import { readHot } from "../../api/hot";
import type { Cursor, Told, Wish } from "../events/frames";
import { startOf } from "../events/start";

const PAGE_EVENTS = 100;

type Order = "forward" | "backward";

interface Ask {
  order: Order;
  from: string; // a start, or the cursor of the last event seen
}

interface Answer {
  events: Told[];
  cursor: Cursor; // where the next page begins: forward with what is after it, backward with itself
  head: number; // the stream's last sequence
  first: number; // the first one held
}

interface Page extends Answer {
  ask: Ask;
}

/** Pages around the place that is wished for; `rows` are newest first. */
export function useHistory(wish: Wish) {
  const list = useInfiniteQuery({
    queryKey: ["history", wish],
    queryFn: async ({ pageParam }) => readPage(wish, pageParam ?? (await firstAsk(wish))),
    initialPageParam: undefined as Ask | undefined,
    getNextPageParam: older,
    getPreviousPageParam: newer,
    staleTime: Infinity, // what was is as it was; `newer` asks for what has come since
    retry: false,
  });
  const rows = (list.data?.pages ?? []).flatMap((page) => newestFirst(page));
  return { ...list, rows, newest: list.data?.pages[0], oldest: list.data?.pages.at(-1) };
}

async function readPage(wish: Wish, ask: Ask): Promise<Page> {
  const { order, from } = ask;
  const { zone, stream, domain, type, application, attributes, language, filter, channels } = wish;
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
  return { ...answer, ask };
}

async function firstAsk(wish: Wish): Promise<Ask> {
  if (wish.from === "now") return { order: "backward", from: "now" };
  const start = await startOf(wish);
  if (typeof start === "string") return { order: "forward", from: start };
  return { order: "forward", from: "time" in start ? start.time : textOf(start) };
}

function older({ ask, cursor, first }: Page): Ask | undefined {
  if (ask.order === "forward") return ask.from === "oldest" ? undefined : { order: "backward", from: ask.from };
  return cursor.sequence >= first ? { order: "backward", from: textOf(cursor) } : undefined;
}

function newer({ ask, events, cursor }: Page): Ask {
  const last = ask.order === "forward" ? cursor : (events[0] ?? cursor);
  return { order: "forward", from: textOf(last) };
}

function newestFirst({ events, ask }: Page): Told[] {
  return ask.order === "backward" ? events : [...events].reverse();
}

function textOf({ segment, sequence }: Cursor): string {
  return `${segment}:${sequence}`;
}
