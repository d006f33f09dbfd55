import { useMutation, useQueryClient } from "@tanstack/react-query";

import { api, done } from "../../api/client";
import { DeletionBanner } from "../../parts/DeletionBanner";
import { ScheduleDeletion } from "../../parts/ScheduleDeletion";
import type { Stream } from "./streams";

const ABOUT =
  "From now on it takes no events and no new registrations; everything can still be read. At the end its events, registrations, deliveries, index and archived files are deleted.";

interface Props {
  zone: string;
  stream: Stream;
}

/** The button that deletes a stream; none for `system` or while a deletion is scheduled. */
export function DeleteStream({ zone, stream }: Props) {
  const refresh = useRefresh(zone);
  const removal = useMutation({
    mutationFn: (grace_s: number) => done(api.DELETE("/v1/streams/{stream}", { params: { path: { stream: stream.name }, query: { zone, grace_s } } })),
    onSuccess: refresh,
  });
  if (stream.name === "system" || stream.deletes_at !== null) return null;
  return <ScheduleDeletion noun="stream" name={stream.name} about={ABOUT} removal={removal} onConfirm={removal.mutateAsync} />;
}

/** The notice on the page of a stream that is to be deleted. */
export function StreamDeletionBanner({ zone, stream }: Props) {
  const refresh = useRefresh(zone);
  const restoring = useMutation({
    mutationFn: () => done(api.POST("/v1/streams/{stream}/restore", { params: { path: { stream: stream.name }, query: { zone } } })),
    onSuccess: refresh,
  });
  if (stream.deletes_at === null) return null;
  return (
    <DeletionBanner
      noun="stream"
      deletesAt={stream.deletes_at}
      about="Emits, new registrations and changes of the policy are refused."
      restoring={restoring}
      onRestore={() => restoring.mutate()}
    />
  );
}

function useRefresh(zone: string) {
  const queries = useQueryClient();
  return () => queries.invalidateQueries({ queryKey: ["streams", zone] });
}
