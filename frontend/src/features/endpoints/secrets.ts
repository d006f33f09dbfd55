import { useInfiniteQuery, useMutation } from "@tanstack/react-query";

import { api, done, ifMatch } from "../../api/client";
import { PAGING } from "../../api/pages";
import type { components } from "../../api/schema";
import { at, useRefresh } from "./endpoints";

export type SigningSecret = components["schemas"]["Secret"];
export type NewSecret = components["schemas"]["NewSecret"];

export const OVERLAPS = [
  { value: "0", label: "None: revoke the previous ones at once" },
  { value: "3600", label: "1 hour" },
  { value: "86400", label: "1 day" },
  { value: "604800", label: "7 days" },
  { value: "2592000", label: "30 days" },
] as const;
export const OVERLAP_DEFAULT = "86400";

/** Query the valid secrets, without their text. */
export function useSecrets(zone: string, id: number) {
  return useInfiniteQuery({
    queryKey: ["endpoints", zone, "secrets", id],
    queryFn: ({ pageParam }) => {
      const { path, query } = at(zone, id);
      return done(api.GET("/v1/endpoints/{endpoint}/secrets", { params: { path, query: { ...query, after: pageParam } } }));
    },
    ...PAGING,
  });
}

/** Fails with 412 if the endpoint has changed since it was loaded with `etag`. */
export function useRotateSecret(zone: string, id: number, etag: string | undefined) {
  const refresh = useRefresh(zone);
  return useMutation({
    mutationFn: (body: NewSecret) =>
      done(api.POST("/v1/endpoints/{endpoint}/secrets", { params: at(zone, id), headers: ifMatch(etag), body })),
    onSuccess: refresh,
  });
}

export function useRevokeSecret(zone: string, id: number, secret: number) {
  const refresh = useRefresh(zone);
  return useMutation({
    mutationFn: () => {
      const { path, query } = at(zone, id);
      return done(
        api.DELETE("/v1/endpoints/{endpoint}/secrets/{secret}", { params: { path: { ...path, secret: String(secret) }, query } }),
      );
    },
    onSuccess: refresh,
  });
}
