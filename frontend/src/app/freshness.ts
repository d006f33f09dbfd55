import { type Query, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import { textOf } from "../api/problem";

/** The reason why the data is stale, and its time. */
export interface Staleness {
  asOf: number; // milliseconds of the epoch
  why: string;
}

const SILENT_MS = 8_000; // without an answer a read counts as failed
const YOUNG_MS = 3_000; // a single failure is tolerated for so long
const TICK_MS = 1_000;

/**
 * Set while a read that is on the page fails, or gets no answer, and what it found before is still shown: by the
 * oldest of these.
 */
export function useStaleness(): Staleness | undefined {
  const cache = useQueryClient().getQueryCache();
  const [found, setFound] = useState<Staleness>();
  useEffect(() => {
    const startedAt = new Map<string, number>(); // start of each request in progress
    const look = () => {
      const now = Date.now();
      const active = cache.findAll({ type: "active" });
      for (const { queryHash, state } of active) {
        if (state.fetchStatus === "idle") startedAt.delete(queryHash);
        else if (!startedAt.has(queryHash)) startedAt.set(queryHash, now);
      }
      const stale = active.filter((query) => isStale(query, now, now - (startedAt.get(query.queryHash) ?? now)));
      setFound((before) => kept(before, oldest(stale)));
    };
    const stop = cache.subscribe(() => queueMicrotask(look));
    const timer = setInterval(look, TICK_MS);
    return () => {
      stop();
      clearInterval(timer);
    };
  }, [cache]);
  return found;
}

function isStale({ state }: Query, now: number, waitedMs: number): boolean {
  if (state.data === undefined || state.data === null) return false; // its component reports the error
  const failed = state.fetchFailureCount > 0 || state.status === "error";
  return waitedMs > SILENT_MS || (failed && now - state.dataUpdatedAt > YOUNG_MS);
}

function oldest(stale: readonly Query[]): Staleness | undefined {
  const [first] = [...stale].sort((one, other) => one.state.dataUpdatedAt - other.state.dataUpdatedAt);
  if (first === undefined) return undefined;
  const { dataUpdatedAt: asOf, fetchFailureReason, error } = first.state;
  const reason = fetchFailureReason ?? error;
  return { asOf, why: reason === null ? "The hub does not answer." : textOf(reason) };
}

/** The same object while nothing has changed, so that nothing is drawn again. */
function kept(before: Staleness | undefined, now: Staleness | undefined): Staleness | undefined {
  return before?.asOf === now?.asOf && before?.why === now?.why ? before : now;
}
