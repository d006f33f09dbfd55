import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";

import { api, done } from "../../api/client";
import type { components } from "../../api/schema";

export type MatchIndex = components["schemas"]["MatchIndex"];
export type Epoch = components["schemas"]["IndexEpoch"];
export type Build = components["schemas"]["IndexBuild"];

const INTERVAL_MS = 3_000;
const BUSY_INTERVAL_MS = 2_000; // during a build; each poll counts rows in the database

/** True while a build is under way or waits for a worker. */
export function isBusy(build: Build | null): build is Build {
  return build?.state === "waiting" || build?.state === "building";
}

export function matchIndexOf(zone: string, stream: string) {
  return queryOptions({
    queryKey: ["match-index", zone, stream],
    queryFn: () => done(api.GET("/v1/streams/{stream}/match-index", { params: at(zone, stream) })),
    refetchInterval: (query) => (isBusy(query.state.data?.build ?? null) ? BUSY_INTERVAL_MS : INTERVAL_MS),
  });
}

/** Request a build. */
export function useBuild(zone: string, stream: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () => done(api.POST("/v1/streams/{stream}/match-index", { params: at(zone, stream) })),
    onSuccess: (found) => queries.setQueryData(matchIndexOf(zone, stream).queryKey, found),
  });
}

function at(zone: string, stream: string) {
  return { path: { stream }, query: { zone } };
}
