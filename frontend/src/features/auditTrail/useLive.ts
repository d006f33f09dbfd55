import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import { Feed, type Link } from "../listening/feed";

const RENEW_MS = 1_000; // between two readings of the trail, however many events come

/** Reads the trail again after events of `system`, until paused; returns the state of the connection. */
export function useLive(zone: string, listening: boolean): Link["kind"] {
  const queries = useQueryClient();
  const [link, setLink] = useState<Link["kind"]>("connecting");
  useEffect(() => {
    if (!listening) return;
    let due: ReturnType<typeof setTimeout> | undefined;
    const renew = () => {
      due ??= setTimeout(() => {
        due = undefined;
        void queries.invalidateQueries({ queryKey: ["audit", zone] });
      }, RENEW_MS);
    };
    const feed = new Feed(
      { zone, stream: "system", from: "now", attributes: {}, channels: [] },
      { event: renew, gap: renew, link: ({ kind }) => setLink(kind) },
    );
    feed.start();
    return () => {
      clearTimeout(due);
      feed.close();
    };
  }, [queries, zone, listening]);
  return listening ? link : "paused";
}
