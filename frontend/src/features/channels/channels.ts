import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import { api, done } from "../../api/client";
import type { components } from "../../api/schema";

export type Channel = components["schemas"]["Channel"];

const BITS = 64;

export function useChannels(zone: string) {
  return useQuery({
    queryKey: ["channels", zone],
    queryFn: async () => (await done(api.GET("/v1/channels", { params: { query: { zone } } }))).items,
    staleTime: 10_000,
  });
}

/** Return the bits without a name, lowest first; the last bit is `default`. */
export function freeBits(channels: readonly Channel[]): number[] {
  const taken = new Set(channels.map((channel) => channel.bit));
  return Array.from({ length: BITS - 1 }, (_, bit) => bit).filter((bit) => !taken.has(bit));
}

export function useDefineChannel(zone: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ name, bit }: { name: string; bit: number }) =>
      done(
        api.PUT("/v1/channels/{channel}", {
          params: { path: { channel: name }, query: { zone } },
          body: { mask: String(1n << BigInt(bit)) },
        }),
      ),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["channels", zone] }),
  });
}
