import { useQuery } from "@tanstack/react-query";

import { api, done } from "../api/client";
import { Problem } from "../api/problem";

/** The names of the zone's clients, at most the first thousand. */
export function useClients(zone: string) {
  return useQuery({
    queryKey: ["clients", zone],
    queryFn: async () => {
      const page = await done(api.GET("/v1/clients", { params: { query: { zone, limit: 1000 } } }));
      return page.items.map((client) => client.name);
    },
    staleTime: 10_000,
  });
}

/** Makes a client that is not there yet. */
export async function ensureClient(zone: string, name: string, known: readonly string[]): Promise<void> {
  if (known.includes(name)) return;
  try {
    await done(api.POST("/v1/clients", { params: { query: { zone } }, body: { name } }));
  } catch (error) {
    if (error instanceof Problem && error.code === "conflict") return; // somebody was faster
    if (error instanceof Problem && error.field === "name") throw error.at("client");
    throw error;
  }
}
