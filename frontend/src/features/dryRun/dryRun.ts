/** Dry runs of a draft over stored events, with progress. */

import { useCallback, useEffect, useRef, useState } from "react";

import { linesOf } from "../../api/hot";
import { Problem, type ProblemBody } from "../../api/problem";
import type { components } from "../../api/schema";
import type { FilterRequest } from "../filters/draft";

export type Outcome = components["schemas"]["DryRun"];
export type Series = Outcome["series"];

/** A range of events: the last N, or those appended from a time, optionally to another. */
export interface Range {
  stream: string;
  last?: number;
  from?: string; // RFC 3339, or `oldest`
  to?: string; // RFC 3339
}

type Counts = Pick<Outcome, "cursor" | "to" | "looked_at" | "matched" | "series">;
type Line = ({ op: "progress" } & Counts) | ({ op: "end" } & Outcome) | ({ op: "error"; status?: number } & Partial<ProblemBody>);

export interface Run {
  range: Range;
  request: FilterRequest;
  counts: Counts | undefined; // so far
  outcome: Outcome | undefined; // when it has ended
  stopped: boolean; // by the user
  error: unknown;
}

const SAMPLES = 5;

/** One run at a time: a new run, or leaving the page, aborts it. */
export function useDryRun(zone: string) {
  const [run, setRun] = useState<Run>();
  const going = useRef<AbortController>(null);
  const stop = useCallback(() => {
    going.current?.abort();
    going.current = null;
  }, []);
  useEffect(() => stop, [stop]);

  const start = (request: FilterRequest, range: Range) => {
    stop();
    const own = new AbortController();
    going.current = own;
    const first: Run = { range, request, counts: undefined, outcome: undefined, stopped: false, error: undefined };
    setRun(first);
    const report = (part: Partial<Run>) => setRun((now) => ({ ...(now ?? first), ...part }));
    own.signal.addEventListener("abort", () => report({ stopped: true }));
    void follow(zone, request, range, own.signal, report);
  };
  const busy = run !== undefined && run.outcome === undefined && !run.stopped && run.error === undefined;
  return { run, busy, start, stop };
}

async function follow(zone: string, request: FilterRequest, range: Range, signal: AbortSignal, report: (part: Partial<Run>) => void): Promise<void> {
  const body = JSON.stringify({ ...withoutNulls(request), ...range, samples: SAMPLES });
  try {
    for await (const line of linesOf<Line>(zone, "/v1/filters/dry-run", body, signal)) {
      if (signal.aborted) return;
      if (line.op === "progress") report({ counts: line });
      else if (line.op === "error") throw new Problem(line.status ?? 500, line);
      else {
        report({ counts: line, outcome: line });
        return;
      }
    }
    throw new Error("The response is incomplete. Run it again.");
  } catch (error) {
    if (!signal.aborted) report({ error });
  }
}

function withoutNulls(request: FilterRequest): Partial<FilterRequest> {
  return Object.fromEntries(Object.entries(request).filter(([, value]) => value !== null));
}

/** Return the progress, from 0 to 1. */
export function progressOf({ cursor, to, looked_at: done }: Counts): number {
  const all = done + Math.max(0, to - cursor.sequence);
  return all === 0 ? 1 : done / all;
}
