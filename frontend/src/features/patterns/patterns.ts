import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, queryOptions, useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import { api, done, ifMatch, loaded } from "../../api/client";
import { PAGING } from "../../api/pages";
import type { components } from "../../api/schema";

export type Pattern = components["schemas"]["Pattern"];
export type PatternGroup = components["schemas"]["PatternGroup"];
export type Language = Pattern["language"];
export type Check = components["schemas"]["PatternCheck"];
export type Step = components["schemas"]["PatternStep"];
type NewPattern = components["schemas"]["NewPattern"] & { client: string };
type NewGroup = components["schemas"]["NewPatternGroup"] & { client: string };
type Change = components["schemas"]["PatchedPatternChange"];
type Bench = components["schemas"]["PatternDryRunRequest"];

/** A part of a pattern after an event of a dry run. */
export interface Part {
  element: string;
  status: "inactive" | "waiting" | "matched" | "failed";
  since: Position | null;
  expires_at: string | null;
  bound: Record<string, Position[]>;
  children: Part[];
}

export interface Position {
  order?: number; // none: of a back-test
  type?: string;
  stream?: string; // none: an event that was typed
  sequence?: number; // none: an event that the pattern created
}

export const LANGUAGES: readonly { value: Language; label: string }[] = [
  { value: "ready", label: "READY" },
  { value: "temporal", label: "Temporal" },
  { value: "agent", label: "Agent" },
];
export function languageText(language: Language): string {
  return LANGUAGES.find(({ value }) => value === language)?.label ?? language;
}

export const STATUSES: Pattern["status"][] = ["running", "suspended", "ended", "stopped"];

export interface PatternFilter {
  client?: string;
  group?: string; // its name
  status?: Pattern["status"];
}

const PATTERNS = "patterns";
const GROUPS = "pattern-groups";
const REFRESH_MS = 5_000;
const PAUSE_MS = 250; // without typing, before a check

export function usePatterns(zone: string, filter: PatternFilter) {
  return useInfiniteQuery({
    queryKey: [PATTERNS, zone, "pages", filter],
    queryFn: ({ pageParam }) => done(api.GET("/v1/patterns", { params: { query: { zone, ...filter, after: pageParam, limit: 100 } } })),
    refetchInterval: REFRESH_MS,
    ...PAGING,
  });
}

export function usePatternGroups(zone: string, client: string | undefined) {
  return useInfiniteQuery({
    queryKey: [GROUPS, zone, "pages", client],
    queryFn: ({ pageParam }) => done(api.GET("/v1/pattern-groups", { params: { query: { zone, client, after: pageParam, limit: 100 } } })),
    refetchInterval: REFRESH_MS,
    ...PAGING,
  });
}

/** Query the names of the groups of a client or of all, at most of the first thousand. */
export function usePatternGroupNames(zone: string, client: string | undefined) {
  return useQuery({
    queryKey: [GROUPS, zone, "names", client],
    queryFn: async () => {
      const found = await done(api.GET("/v1/pattern-groups", { params: { query: { zone, client, limit: 1000 } } }));
      return [...new Set(found.items.map(({ name }) => name))];
    },
    enabled: client !== "",
    retry: false, // the client may be half typed
  });
}

export function onePattern(zone: string, id: number) {
  return queryOptions({
    queryKey: [PATTERNS, zone, "one", id],
    queryFn: () => loaded(api.GET("/v1/patterns/{pattern}", { params: of(zone, id) })),
    refetchInterval: REFRESH_MS,
  });
}

/** What a pattern has bound and waits for, as of the last checkpoint of its group. */
export function waitingOf(zone: string, id: number) {
  return queryOptions({
    queryKey: [PATTERNS, zone, "waiting", id],
    queryFn: () => done(api.GET("/v1/patterns/{pattern}/waiting", { params: of(zone, id) })),
    refetchInterval: REFRESH_MS,
    retry: false,
  });
}

export function onePatternGroup(zone: string, id: number) {
  return queryOptions({
    queryKey: [GROUPS, zone, "one", id],
    queryFn: () => done(api.GET("/v1/pattern-groups/{pattern_group}", { params: ofGroup(zone, id) })),
    refetchInterval: REFRESH_MS,
  });
}

/** Query the streams of the group of a pattern. */
export function groupStreamsOf(zone: string, { client, group: name }: Pattern) {
  return queryOptions({
    queryKey: [GROUPS, zone, "streams", client, name],
    queryFn: async () => {
      const found = await done(api.GET("/v1/pattern-groups", { params: { query: { zone, client, name } } }));
      return found.items.flatMap(({ streams }) => streams);
    },
  });
}

export function useCreatePattern(zone: string) {
  return useWrite(zone, async (body: NewPattern) => {
    const made = await done(api.POST("/v1/patterns", { params: { query: { zone } }, body }));
    if ("items" in made) throw new Error("The hub created a list of patterns.");
    return made;
  });
}

/** Fails with 412 if it has changed since it was loaded with `etag`. */
export function useChangePattern(zone: string, id: number, etag?: string) {
  return useWrite(zone, (body: Change) => done(api.PATCH("/v1/patterns/{pattern}", { params: of(zone, id), headers: ifMatch(etag), body })));
}

export function useDeletePattern(zone: string, id: number) {
  return useWrite(zone, () => done(api.DELETE("/v1/patterns/{pattern}", { params: of(zone, id) })));
}

export function useCreatePatternGroup(zone: string) {
  return useWrite(zone, (body: NewGroup) => done(api.POST("/v1/pattern-groups", { params: { query: { zone } }, body })));
}

export function useSuspendPatternGroup(zone: string, id: number) {
  return useWrite(zone, (suspended: boolean) =>
    done(api.PATCH("/v1/pattern-groups/{pattern_group}", { params: ofGroup(zone, id), body: { suspended } })),
  );
}

export function useDeletePatternGroup(zone: string, id: number) {
  return useWrite(zone, () => done(api.DELETE("/v1/pattern-groups/{pattern_group}", { params: ofGroup(zone, id) })));
}

/** Check a text during input. A new check cancels the previous one. */
export function usePatternCheck(zone: string, language: Language, text: string) {
  const [settled] = useDebouncedValue(text, PAUSE_MS);
  const check = useQuery({
    queryKey: ["pattern-check", zone, language, settled],
    queryFn: ({ signal }) => done(api.POST("/v1/patterns/check", { params: { query: { zone } }, body: { language, text: settled }, signal })),
    enabled: settled.trim() !== "",
    placeholderData: keepPreviousData,
    staleTime: 30_000,
    retry: false,
  });
  const said = text.trim() === "" || check.data?.language !== language ? undefined : check.data;
  return { said, error: check.error };
}

export function useBench(zone: string) {
  return useMutation({
    mutationFn: (body: Bench) => done(api.POST("/v1/patterns/dry-run", { params: { query: { zone } }, body })),
  });
}

function of(zone: string, id: number) {
  return { path: { pattern: String(id) }, query: { zone } };
}

function ofGroup(zone: string, id: number) {
  return { path: { pattern_group: String(id) }, query: { zone } };
}

function useWrite<Body, Answer>(zone: string, mutationFn: (body: Body) => Promise<Answer>) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn,
    onSuccess: () => {
      for (const kind of [PATTERNS, GROUPS]) void queries.invalidateQueries({ queryKey: [kind, zone] });
    },
  });
}
