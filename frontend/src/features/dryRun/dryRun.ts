/** Runs of a draft over events of the log, told as they go on. */

import { useCallback, useEffect, useRef, useState } from "react";

import { linesOf } from "../../api/hot";
import { Problem, type ProblemBody } from "../../api/problem";
import type { components } from "../../api/schema";
import type { AskedFilter } from "../filters/draft";

export type Outcome = components["schemas"]["DryRun"];
export type Series = Outcome["series"];

/** Which events: the last so many, or those appended since a time, up to another one if there is one. */
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
  asked: AskedFilter;
  counts: Counts | undefined; // so far
  outcome: Outcome | undefined; // when it is over
  stopped: boolean; // by the reader
  error: unknown;
}

const SAMPLES = 5;

/** One run at a time: another one, or leaving the page, ends it. */
export function useDryRun(zone: string) {
  const [run, setRun] = useState<Run>();
  const going = useRef<AbortController>(null);
  const stop = useCallback(() => {
    going.current?.abort();
    going.current = null;
  }, []);
  useEffect(() => stop, [stop]);

  const start = (asked: AskedFilter, range: Range) => {
    stop();
    const own = new AbortController();
    going.current = own;
    const first: Run = { range, asked, counts: undefined, outcome: undefined, stopped: false, error: undefined };
    setRun(first);
    const tell = (part: Partial<Run>) => setRun((now) => ({ ...(now ?? first), ...part }));
    own.signal.addEventListener("abort", () => tell({ stopped: true }));
    void follow(zone, asked, range, own.signal, tell);
  };
  const busy = run !== undefined && run.outcome === undefined && !run.stopped && run.error === undefined;
  return { run, busy, start, stop };
}

async function follow(zone: string, asked: AskedFilter, range: Range, signal: AbortSignal, tell: (part: Partial<Run>) => void): Promise<void> {
  const body = JSON.stringify({ ...given(asked), ...range, samples: SAMPLES });
  try {
    for await (const line of linesOf<Line>(zone, "/v1/filters/dry-run", body, signal)) {
      if (signal.aborted) return;
      if (line.op === "progress") tell({ counts: line });
      else if (line.op === "error") throw new Problem(line.status ?? 500, line);
      else {
        tell({ counts: line, outcome: line });
        return;
      }
    }
    throw new Error("The answer broke off. Run it again.");
  } catch (error) {
    if (!signal.aborted) tell({ error });
  }
}

function given(asked: AskedFilter): Partial<AskedFilter> {
  return Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== null));
}

/** How much of its way it has gone, from 0 to 1. */
export function progressOf({ cursor, to, looked_at: done }: Counts): number {
  const all = done + Math.max(0, to - cursor.sequence);
  return all === 0 ? 1 : done / all;
}
