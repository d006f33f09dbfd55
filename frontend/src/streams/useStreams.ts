import { useQuery } from "@tanstack/react-query";

import { api, done } from "../api/client";

/** The names of the zone's streams, `system` last; at most the first thousand. */
export function useStreams(zone: string) {
  return useQuery({
    queryKey: ["streams", zone],
    queryFn: async () => {
      const page = await done(api.GET("/v1/streams", { params: { query: { zone, limit: 1000 } } }));
      const names = page.items.map((stream) => stream.name).filter((name) => name !== "system");
      return [...names, "system"];
    },
    staleTime: 10_000,
  });
}
