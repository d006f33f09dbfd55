import { type QueryClient, queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import { api, done } from "../../api/client";
import type { components } from "../../api/schema";

type Answer = components["schemas"]["Storage"];

/** The operator's view: null means unknown, never withheld. */
export type Storage = Answer & { used_bytes: number; partitions: number };
export type StreamSize = Storage["streams"][number];

const INTERVAL_MS = 2_000;
const KEPT = 600; // twenty minutes

/** The last reading, and the earlier ones since the console was opened. */
export interface Readings {
  now: Storage;
  history: { at: number; used: number; quota: number | null }[]; // at: seconds of the epoch
}

export function storageOf(zone: string, queries: QueryClient) {
  const queryKey = ["storage", zone];
  return queryOptions({
    queryKey,
    queryFn: async (): Promise<Readings> => {
      const now = asOperator(await done(api.GET("/v1/storage", { params: { query: { zone } } })));
      const before = queries.getQueryData<Readings>(queryKey)?.history ?? [];
      const sample = { at: Date.now() / 1000, used: now.used_bytes, quota: now.quota_bytes };
      return { now, history: [...before, sample].slice(-KEPT) };
    },
    refetchInterval: INTERVAL_MS,
    gcTime: Infinity,
  });
}

/** A logged-in user of the console is an operator. */
function asOperator(answer: Answer): Storage {
  return { ...answer, used_bytes: answer.used_bytes ?? 0, partitions: answer.partitions ?? 0 };
}

/** Segments and bytes of each stream by its name; undefined until they are known. */
export function useStreamSizes(zone: string): Map<string, { segments: number; bytes: number }> | undefined {
  const queries = useQueryClient();
  const { data } = useQuery({ ...storageOf(zone, queries), retry: false });
  return data && new Map(data.now.streams.map((stream) => [stream.name, { segments: stream.segments.live + stream.segments.archived, bytes: stream.bytes }]));
}

export function useChangeQuota(zone: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (quota: number | null) => done(api.PUT("/v1/storage", { body: { quota_bytes: quota } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["storage", zone] }),
  });
}
