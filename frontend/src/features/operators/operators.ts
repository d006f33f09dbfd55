import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";

import { api, done } from "../../api/client";
import { PAGING } from "../../api/pages";
import type { components } from "../../api/schema";
import type { Role } from "../../api/session";

export type Operator = components["schemas"]["Operator"];
export type OperatorChange = components["schemas"]["PatchedOperatorChange"];

const KEY = ["operators"];

/** What each role may do, in the order of ROLES. */
export const ABOUT: Record<Role, string> = {
  viewer: "reads everything and changes nothing",
  operator: "also changes everything but operators and API keys, and deletes no zones",
  admin: "does everything",
};

export function useOperators() {
  return useInfiniteQuery({
    queryKey: KEY,
    queryFn: ({ pageParam }) => done(api.GET("/v1/operators", { params: { query: { after: pageParam, limit: 100 } } })),
    ...PAGING,
  });
}

/** Create an operator without a password; the answer has its set-up token. */
export function useCreateOperator() {
  return useWrite((body: { name: string; role: Role }) => done(api.POST("/v1/operators", { body })));
}

export function useChangeOperator(operator: string) {
  return useWrite((body: OperatorChange) => done(api.PATCH("/v1/operators/{operator}", { params: { path: { operator } }, body })));
}

export function useSetupToken(operator: string) {
  return useWrite(() => done(api.POST("/v1/operators/{operator}/setup-token", { params: { path: { operator } } })));
}

export function useDeleteOperator(operator: string) {
  return useWrite(() => done(api.DELETE("/v1/operators/{operator}", { params: { path: { operator } } })));
}

function useWrite<Body, Answer>(mutationFn: (body: Body) => Promise<Answer>) {
  const queries = useQueryClient();
  return useMutation({ mutationFn, onSuccess: () => queries.invalidateQueries({ queryKey: KEY }) });
}
