import { type QueryClient, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import { api, done } from "./client";
import { keepToken } from "./csrf";
import { Problem } from "./problem";

export interface Session {
  username: string;
}

const KEY = ["session"];

/** The session: null if logged out, undefined while unknown. */
export function useSession() {
  return useQuery({ queryKey: KEY, queryFn: readSession, staleTime: Infinity });
}

async function readSession(): Promise<Session | null> {
  try {
    const found = await done(api.GET("/v1/session"));
    keepToken(found.csrf_token);
    return { username: found.username };
  } catch (error) {
    if (error instanceof Problem && error.status === 401) return null;
    throw error;
  }
}

export function useSignIn() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: { username: string; password: string }) =>
      done(api.POST("/v1/session", { body })),
    onSuccess: (found) => {
      keepToken(found.csrf_token);
      begin(queries, { username: found.username });
    },
  });
}

export function useSignOut() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () => done(api.DELETE("/v1/session")),
    onSuccess: () => begin(queries, null),
  });
}

/** Clear all cached data of the previous operator. */
function begin(queries: QueryClient, session: Session | null): void {
  queries.removeQueries({ predicate: (query) => query.queryKey[0] !== KEY[0] });
  queries.setQueryData(KEY, session);
}
