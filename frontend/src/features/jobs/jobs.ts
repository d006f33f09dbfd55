import { queryOptions, useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";

import { api, done } from "../../api/client";
import type { JobName, Run } from "./types";

const BUSY_INTERVAL_MS = 1_000;
const INTERVAL_MS = 10_000; // a scheduled run may start
const LOG_INTERVAL_MS = 2_000;
const PAGE = 20;

export function isGoing(run: Run | null | undefined): run is Run {
  return run?.state === "waiting" || run?.state === "running";
}

export const allJobs = queryOptions({
  queryKey: ["jobs"],
  queryFn: () => done(api.GET("/v1/jobs")),
  refetchInterval: ({ state: { data } }) => (data?.jobs.some(({ running }) => isGoing(running)) ? BUSY_INTERVAL_MS : INTERVAL_MS),
});

export function oneRun(job: string, run: number) {
  return queryOptions({
    queryKey: ["runs", job, "one", run],
    queryFn: () => done(api.GET("/v1/jobs/{job}/runs/{run}", { params: { path: { job, run: String(run) } } })),
    refetchInterval: ({ state: { data } }) => (isGoing(data) ? BUSY_INTERVAL_MS : false),
  });
}

/** A job's runs, newest first; refreshed while only the first page is loaded. */
export function useRuns(job: JobName) {
  return useInfiniteQuery({
    queryKey: ["runs", job, "pages"],
    queryFn: async ({ pageParam: after }) => {
      const query = { limit: PAGE, after };
      return done(api.GET("/v1/jobs/{job}/runs", { params: { path: { job }, query } }));
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
    refetchInterval: ({ state: { data } }) => {
      if (data?.pages.length !== 1) return false;
      return data.pages[0]?.items.some(isGoing) ? BUSY_INTERVAL_MS : INTERVAL_MS;
    },
  });
}

/** The end of a run's log; empty before the first line. */
export function logOf({ job, id, state }: Run) {
  const isOver = state !== "waiting" && state !== "running";
  return queryOptions({
    queryKey: ["runs", job, "log", id, isOver],
    queryFn: async () => {
      const path = { job, run: String(id) };
      const text = await done(api.GET("/v1/jobs/{job}/runs/{run}/log", { params: { path }, parseAs: "text" }));
      return text || ""; // an empty answer counts as none
    },
    refetchInterval: isOver ? false : LOG_INTERVAL_MS,
    placeholderData: (before: string | undefined) => before,
  });
}

export function fileAt({ job, id }: Run, name: string): string {
  return `/v1/jobs/${job}/runs/${id}/files/${name.split("/").map(encodeURIComponent).join("/")}`;
}

export function useStart(job: JobName) {
  const refresh = useRefresh();
  return useMutation({
    mutationFn: (params: Record<string, unknown>) => done(api.POST("/v1/jobs/{job}/runs", { params: { path: { job } }, body: { params } })),
    onSuccess: refresh,
  });
}

export function useCancel({ job, id }: Run) {
  const refresh = useRefresh();
  return useMutation({
    mutationFn: () => done(api.POST("/v1/jobs/{job}/runs/{run}/cancel", { params: { path: { job, run: String(id) } } })),
    onSuccess: refresh,
  });
}

/** Applies a plan; actions that are no longer allowed are refused. */
export function useApply({ id }: Run) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () => done(api.POST("/v1/jobs/retention/runs/{run}/apply", { params: { path: { run: String(id) } } })),
    onSuccess: () => {
      for (const kind of ["segments", "storage", "streams"]) void queries.invalidateQueries({ queryKey: [kind] });
    },
  });
}

function useRefresh() {
  const queries = useQueryClient();
  return () => {
    for (const kind of ["jobs", "runs"]) void queries.invalidateQueries({ queryKey: [kind] });
  };
}
