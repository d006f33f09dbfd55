import { useQuery } from "@tanstack/react-query";

import { api, done } from "../../api/client";

/** What a registration may belong to beside its client; at most one of both is given. */
export interface Owner {
  session: string | null;
  session_group: string | null;
}

export const CLIENT_ALONE: Owner = { session: null, session_group: null };

/** Query the consumer sessions and the session groups of a zone, or of a client: the first thousand of each. */
export function useOwners(zone: string, client?: string) {
  return useQuery({
    queryKey: ["sessions", zone, "owners", client],
    queryFn: async () => {
      const query = { zone, client, limit: 1000 };
      const [sessions, groups] = await Promise.all([
        done(api.GET("/v1/sessions", { params: { query: { ...query, kind: "consumer" } } })),
        done(api.GET("/v1/session-groups", { params: { query } })),
      ]);
      return { sessions: sessions.items, groups: groups.items };
    },
    staleTime: 5_000,
  });
}

/** An owner as the value of a choice, and back. */
export function valueOf({ session, session_group: group }: Owner): string | null {
  if (session !== null) return `session:${session}`;
  return group === null ? null : `session_group:${group}`;
}

export function ownerOf(value: string | null): Owner {
  const at = value?.indexOf(":") ?? -1;
  if (value === null || at < 0) return CLIENT_ALONE;
  const name = value.slice(at + 1);
  return value.startsWith("session:") ? { session: name, session_group: null } : { session: null, session_group: name };
}

/** The owner as the fields of a request. */
export function ownerFields({ session, session_group: group }: Owner): { session?: string; session_group?: string } {
  if (session !== null) return { session };
  return group === null ? {} : { session_group: group };
}
