import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import { api, done } from "../../api/client";
import { DeletionBanner } from "../../parts/DeletionBanner";
import { ScheduleDeletion } from "../../parts/ScheduleDeletion";

const ABOUT =
  "From now on its streams take no events, and it gets nothing new; everything can still be read. At the end its keys are revoked, and its streams, clients, registrations, channels and types are deleted. Its name cannot be used again.";

/** The button that deletes the zone; none for `default` or while a deletion is scheduled. */
export function DeleteZone({ zone }: { zone: string }) {
  const { data } = useZoneRow(zone);
  const refresh = useRefresh(zone);
  const removal = useMutation({
    mutationFn: (grace_s: number) => done(api.DELETE("/v1/zones/{name}", { params: { path: { name: zone }, query: { grace_s } } })),
    onSuccess: refresh,
  });
  if (zone === "default" || data === undefined || data.deletes_at !== null) return null;
  return <ScheduleDeletion role="admin" noun="zone" name={zone} about={ABOUT} removal={removal} onConfirm={removal.mutateAsync} />;
}

/** The notice on the overview of a zone that is to be deleted. */
export function ZoneDeletionBanner({ zone }: { zone: string }) {
  const { data } = useZoneRow(zone);
  const refresh = useRefresh(zone);
  const restoring = useMutation({
    mutationFn: () => done(api.POST("/v1/zones/{name}/restore", { params: { path: { name: zone } } })),
    onSuccess: refresh,
  });
  if (data?.deletes_at === undefined || data.deletes_at === null) return null;
  return (
    <DeletionBanner
      noun="zone"
      deletesAt={data.deletes_at}
      about="Emits and everything new are refused."
      restoring={restoring}
      onRestore={() => restoring.mutate()}
    />
  );
}

function useZoneRow(zone: string) {
  return useQuery({
    queryKey: ["zones", "one", zone],
    queryFn: () => done(api.GET("/v1/zones/{name}", { params: { path: { name: zone } } })),
    staleTime: 10_000,
  });
}

function useRefresh(zone: string) {
  const queries = useQueryClient();
  return async () => {
    for (const key of [["zones"], ["streams", zone]]) await queries.invalidateQueries({ queryKey: key });
  };
}
