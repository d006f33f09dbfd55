import { type QueryClient, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import { api, done } from "./client";
import { keepToken } from "./csrf";
import { Problem } from "./problem";
import type { components } from "./schema";

export type Role = components["schemas"]["LoginState"]["role"];

export const ROLES: readonly Role[] = ["viewer", "operator", "admin"]; // each may do what those before it may

export function includes(role: Role, least: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(least);
}

export interface Session {
  username: string;
  role: Role;
}

const KEY = ["session"];

/** The session: null if logged out, undefined while unknown. */
export function useSession() {
  return useQuery({ queryKey: KEY, queryFn: readSession, staleTime: Infinity });
}

async function readSession(): Promise<Session | null> {
  try {
    const found = await done(api.GET("/v1/session"));
    return sessionOf(found);
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
    onSuccess: (found) => begin(queries, sessionOf(found)),
  });
}

/** Set the password of an operator who has a set-up token, and sign in. */
export function useSetUp() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: components["schemas"]["Setup"]) => done(api.POST("/v1/session/setup", { body })),
    onSuccess: (found) => begin(queries, sessionOf(found)),
  });
}

/** Change one's own password. */
export function useChangePassword() {
  return useMutation({
    mutationFn: (body: components["schemas"]["PasswordChange"]) => done(api.POST("/v1/session/password", { body })),
    onSuccess: sessionOf,
  });
}

function sessionOf({ username, role, csrf_token: token }: components["schemas"]["LoginState"]): Session {
  keepToken(token);
  return { username, role };
}

/** The role of the operator who is signed in. */
export function useRole(): Role {
  return useSession().data?.role ?? "viewer";
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
